"""Checks of a language model's words against the answers of the tools."""
