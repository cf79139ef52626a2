"""The execution graph: what waits for what."""
