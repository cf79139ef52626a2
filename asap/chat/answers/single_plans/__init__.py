"""Answers on single plans: figures, comparisons, what is split, plans named in part."""
