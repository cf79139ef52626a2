"""Programs that are traced, not compiled: what each device computes, moves and sends, and how long that takes."""
