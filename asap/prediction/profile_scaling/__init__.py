"""What-if from a profile alone, by ratios of degrees."""
