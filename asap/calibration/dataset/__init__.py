"""Published runs, read into plans, workloads and hardware."""
