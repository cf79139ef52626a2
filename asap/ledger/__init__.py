"""What ASAP predicted in earlier sessions, and what came of it."""
