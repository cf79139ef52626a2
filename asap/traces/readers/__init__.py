"""Readers of events, one a format."""
