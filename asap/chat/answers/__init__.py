"""Answers of the engine, by subject."""
