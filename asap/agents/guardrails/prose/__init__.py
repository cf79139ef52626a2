"""Reading prose: figures, units, directions, and whose they are."""
