"""What every room needs: errors, units, provenance, text escaping, files."""
