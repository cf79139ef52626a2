"""A package with the shape of MaxText, as MaxText itself cannot be installed beside google-adk.

It reads a configuration as MaxText does and compiles a small step on MaxText's mesh axes.
"""
