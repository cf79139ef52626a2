"""A plan in Megatron-LM's arguments, both ways."""
