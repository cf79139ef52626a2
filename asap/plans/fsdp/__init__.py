"""Programs that train under PyTorch's FSDP by arguments of their own: verl's fine-tuning and llm-recipes."""
