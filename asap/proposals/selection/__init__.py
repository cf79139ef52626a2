"""Candidates: searched, weighed with precedents and doubt, and chosen by strategy."""
