"""The nine distributed algorithms of the mapping language, as JAX programs on a grid of devices."""
