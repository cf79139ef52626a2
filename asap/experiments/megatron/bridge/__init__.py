"""Reads runs of Megatron-Bridge: its YAML, its programs in Python, and what starts its recipes."""
