"""Numbers with their unit, and what they are to change."""
