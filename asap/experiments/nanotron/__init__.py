"""nanotron's YAML configurations."""
