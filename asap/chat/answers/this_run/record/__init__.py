"""Answers on what is on record of the run: its model, its hardware, what predictions take for granted."""
