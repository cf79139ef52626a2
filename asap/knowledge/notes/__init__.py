"""Notes and ingested Markdown, as a corpus to index."""
