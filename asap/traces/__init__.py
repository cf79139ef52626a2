"""Traces of real runs: read, replayed as an execution graph, changed and predicted."""
