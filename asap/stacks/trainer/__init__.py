"""Arguments of Hugging Face's Trainer, which several stacks are started with."""
