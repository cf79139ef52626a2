"""A mapped algorithm judged: right on virtual devices first, then compiled, timed and explained."""
