"""What proposes the next configuration."""
