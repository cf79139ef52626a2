"""Files of settings from strangers: YAML and JSON, read safely, with the files that they name."""
