"""A plan in DeepSpeed's configuration, both ways."""
