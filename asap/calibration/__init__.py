"""Calibration from published runs: offline, never imported by the product."""
