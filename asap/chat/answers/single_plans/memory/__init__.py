"""Answers on the HBM of a plan: whether it fits, what fills it, where the figure comes from."""
