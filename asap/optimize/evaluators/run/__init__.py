"""The user's own command as an evaluator: started, followed by its log, stopped as a whole, and explained."""
