"""Job manifests, and why what is not read is not."""
