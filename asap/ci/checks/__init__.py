"""What a change does: predictions before and after, policy, precedents, suggestions."""
