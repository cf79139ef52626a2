"""The reference training step: a decoder in plain JAX, written for the compiler alone."""
