"""Python programs as far as they are literal: parsed, never run."""
