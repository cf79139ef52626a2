"""Chips, machines and networks that a text names."""
