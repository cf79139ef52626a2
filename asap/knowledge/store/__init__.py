"""Where an index lives: local generations or a shared Chroma server."""
