"""Facts that were stated or compiled, and what they change."""
