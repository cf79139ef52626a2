"""Predictions of published runs against what they measured."""
