"""Which plans and operations a sentence speaks of."""
