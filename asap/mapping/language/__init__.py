"""The language itself: its grammar, the parsed program, and its text."""
