"""What a plan may not do: what cannot be changed or used, and how far a degree or the memory may go."""
