"""Instructions planted where text of strangers comes in, a model that obeys, and what gets through."""
