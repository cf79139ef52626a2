"""ASAP: find what holds a training run back, and propose shardings that can be believed."""

__version__ = "0.1.0"
