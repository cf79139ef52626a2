"""Helm charts that start a training job: their values, and the files that are set with them."""
