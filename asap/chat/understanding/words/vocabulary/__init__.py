"""Words put into those that the rest of the reading knows: other languages, short forms, fillers."""
