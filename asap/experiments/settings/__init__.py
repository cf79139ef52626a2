"""Settings by name, with where each was said, and what of them is misspelt, unused or left open."""
