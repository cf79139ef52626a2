"""What a replayed trace says: iterations, breakdown, stragglers, critical path, quality."""
