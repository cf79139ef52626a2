"""The tables of a GPU run, made from its events and the programs that it compiled."""
