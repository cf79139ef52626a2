"""Proposals on pull requests: what a change of a configuration does to step time, memory and cost."""
