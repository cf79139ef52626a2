"""From an experiment to its bottleneck and proposals: analyze, discuss, show, compare."""
