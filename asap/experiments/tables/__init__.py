"""Runs from the settings of stacks that have a table (asap/stacks): files, commands, and what logs print."""
