"""Megatron-LM, NeMo and Megatron-Bridge: one core, three ways to write its settings."""
