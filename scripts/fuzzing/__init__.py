"""Fuzzing of everything that ASAP reads: examples from the corpus, mutated, until something breaks."""
