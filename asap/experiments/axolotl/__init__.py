"""Axolotl's YAML, with FSDP, DeepSpeed or replicas."""
