"""nanotron's settings of a plan."""
