"""What it costs to split single tensors otherwise than the plan: seconds against the plan's step."""
