"""What is recomputed, kept or put on the host, in the words of engineers and launchers."""
