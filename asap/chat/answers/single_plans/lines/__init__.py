"""Answers on the lines to paste: their settings, flags and batches."""
