"""What a training step costs: time of compute and communication, memory of a device."""
