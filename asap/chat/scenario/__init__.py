"""A run with a change applied."""
