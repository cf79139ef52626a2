"""What turns a configuration into an outcome."""
