"""Results for people and for tools: terminal, Markdown, JSON."""
