"""The mapping language: how a program is laid out over a machine, decision by decision."""
