"""Answers on what holds the run back, or made it slower."""
