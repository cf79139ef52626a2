"""Accelerate's configuration, with the arguments of the program that it starts."""
