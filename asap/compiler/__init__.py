"""Ahead-of-time compilation by the real TPU compiler, and reading of the schedule that it writes."""
