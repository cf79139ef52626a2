"""Words of a language model held against figures of the engine: by reference, with provenance, or as its own words."""
