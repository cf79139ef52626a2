"""Answers on runs that differ: another batch, model or machine, or several values of one thing."""
