"""Hybrid search: terms, vectors and their fusion."""
