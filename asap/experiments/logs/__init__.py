"""Training logs: the settings that a run prints after all defaults, what was measured, and how it ended."""
