"""A short standing set for any language model: questions, facts, planted texts, and one whole analysis."""
