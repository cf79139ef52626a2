"""A plan in MaxText's settings, both ways."""
