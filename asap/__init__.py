"""ASAP: find the bottleneck of an LLM training run, and propose sharding configurations."""

__version__ = "0.3.0"
