"""Files that a script writes, or makes of others, before it starts a run."""
