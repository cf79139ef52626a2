"""Answers on the order of the proposals: which first, by what, and why."""
