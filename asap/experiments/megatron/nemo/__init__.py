"""Reads runs of NeMo: its YAML, its launcher, and recipes of NeMo 2."""
