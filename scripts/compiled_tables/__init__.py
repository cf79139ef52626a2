"""A table of least-effort compilations, which teaches the step model's HBM."""
