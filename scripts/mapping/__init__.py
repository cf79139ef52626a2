"""Benchmarks of the mapping language and of the loop over mapping programs, on exhaustive tables."""
