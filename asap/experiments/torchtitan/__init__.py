"""torchtitan's job configurations."""
