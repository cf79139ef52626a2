"""A plan in torchtitan's settings, both ways."""
