"""Answers that need no figure: greetings, hearsay, help, and what the engine cannot tell."""
