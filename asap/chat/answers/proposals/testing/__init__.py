"""Answers on tests: what to test next, what it costs, what it shows."""
