"""A Study: one experiment with its profile, its hardware and its diagnosis."""
