"""Words that only mean something after the line before: "the second", "no, I meant pp"."""
