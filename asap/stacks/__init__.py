"""What training stacks call their settings: a table a stack, ``<name>/spec.toml``."""
