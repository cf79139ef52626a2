"""A table of compilations, each until its memory is planned, which teaches the step model's HBM."""
