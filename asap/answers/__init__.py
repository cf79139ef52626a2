"""Queries over one run, and their answers: quantities, plans, settings and citations. Words are the reports' affair."""
