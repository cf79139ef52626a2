"""Typed, read-only tools over the engine."""
