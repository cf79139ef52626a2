"""The tools by which a language model puts facts on record, and their checks."""
