"""How well ASAP predicts and answers."""
