"""An answer in words: terminal, plain text, Markdown, HTML, and the compact table that a language model reads."""
