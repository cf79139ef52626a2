"""What everybody needs and nothing else: errors, units, provenance, safe text, files."""
