"""Plans in the settings of a stack that has a table (asap/stacks), both ways."""
