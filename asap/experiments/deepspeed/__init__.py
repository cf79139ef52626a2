"""DeepSpeed's configurations, with a Hugging Face model."""
