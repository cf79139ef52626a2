"""Runs of MLflow and TensorBoard: parameters, step times and profiles; results sent back."""
