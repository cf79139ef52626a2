"""A word that was explained a moment ago, in the place of what stands for it: "and how big is ours?"."""

import re

_SIZE = r"(?:how (?:much|many|big|large|long|high|low|bad|small|expensive)|what(?:'s| is| are| would be)?)"
_OURS = re.compile(
    rf"^(?P<before>\W*(?:(?:and|so|ok(?:ay)?|but|then)\W+)*{_SIZE}\s+(?:(?:is|are|was|would)\s+)?)"
    r"(?P<pronoun>ours|it|that|mine|this)\b"
    r"(?P<after>(?:\s+(?:here|now|for us|in (?:our|this|my) \w+|currently|today))*\W*)$",
    re.I,
)


def with_term_of_before(text: str, term: str | None) -> str:
    """The text with the word that was explained, where it asks how large "ours" is and names nothing else."""
    found = _OURS.match(text) if term is not None else None
    return text if found is None else f"{found['before']}the {term} of our run{found['after']}"
