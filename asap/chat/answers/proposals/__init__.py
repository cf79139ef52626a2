"""Answers on the proposals as a list: their order, verdicts, what to test next, what tests gave."""
