"""What the backward pass recomputes and what a layer keeps for it, in shares."""
