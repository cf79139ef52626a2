"""Answers on the run as it is: its profile, its flags, what holds it back, and words of its report."""
