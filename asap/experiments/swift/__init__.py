"""ms-swift: its commands under transformers' Trainer and under Megatron, and the arguments that a run of it records."""
