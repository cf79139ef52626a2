"""Benchmarks of the loop of ``asap optimize``: what it is tried on, and what it is compared with."""
