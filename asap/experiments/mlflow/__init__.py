"""Runs of MLflow: their parameters, metrics and profiles as an experiment, and results logged back."""
