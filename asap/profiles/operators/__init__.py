"""Operators of PyTorch: what one computes and moves, by the shapes of its inputs, and how near the peak it runs."""
