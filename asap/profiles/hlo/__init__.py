"""The compiled programs that a profile carries, and what stands around an operation in them."""
