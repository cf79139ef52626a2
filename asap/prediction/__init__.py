"""Predictions of step time and memory, with intervals. The model is written over arrays, so it imports numpy."""
