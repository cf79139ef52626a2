"""Another run from the trace of this one: its kernels, scaled by what the step model says of each class."""
