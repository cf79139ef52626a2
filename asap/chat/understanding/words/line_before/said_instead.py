"""A word of the last line that another one takes the place of: "no, I meant pp", "sorry, 128"."""

import re

_OWNS_UP = r"(?:no|nope|nah|sorry|wait|oops|ah|oh|err?|hm+|ok|actually|my bad|typo|correction|scratch that)"
_MEANT = re.compile(
    rf"^\W*(?:{_OWNS_UP}\W+)*(?:(?:i|we)\s+(?:meant|mean)|make (?:it|that))\s+"
    r"(?:to (?:say|type|write|ask)\s+)?(?P<right>.+?)\W*$"
    rf"|^\W*(?:{_OWNS_UP}\W+)*(?:sorry|oops|typo|correction|my bad)\W+(?P<other>.+?)\W*$"
    rf"|^\W*(?:{_OWNS_UP}\W+)*not\s+\S+(?:\s\S+)?\s*[.,;]\s*(?:but\s+)?(?P<after>\S+(?:\s\S+)?)\W*$"
    rf"|^\W*(?P<behind>\S+(?:\s\S+)?)\s+i (?:mean|meant)\W*$",
    re.I,
)
_NOT = re.compile(r"\s*,?\s*\b(?:not|instead of|rather than)\s+\S+(?:\s\S+)?$", re.I)
_ARTICLE = re.compile(r"^(?:the|a|an|with|on|for|at|about)\s+", re.I)
_KINDS = tuple(
    re.compile(rf"(?<![\w.#-])(?:{words})(?![\w%]|[.]\d)", re.I)
    for words in (
        r"(?:tp|pp|cp|ep|fsdp|hsdp|ddp|dp)(?=\b|\d)"
        r"|(?:tensor|pipeline|context|expert|data|model) (?:parallel\w*|stages?|axis)",
        r"twice|double|triple|quadruple|half|halve",
        r"\d{2,}(?:[.,]\d+)?\s?[kmb]?",
        r"\d+[.,]\d+",
        r"v\d[a-z]?(?:-\d+)?|[abh]\d{2,3}s?(?:-\d+)?|mi\d{3}x",
        r"(?:global |local |micro[- ]?)?batch(?: size)?|sequence(?: length)?|context(?: length)?|layers|experts|chips"
        r"|nodes|slices|microbatches",
        r"fp8|bf16|fp32|int8|fp4",
    )
)
"""Words that one of the same kind may stand for."""


def said_instead(text: str, before: str | None) -> str | None:
    """The last line with the word that was meant; ``None`` where a line names none of a kind that stands there once."""
    found = _MEANT.match(text) if before is not None else None
    if found is None or before is None:
        return None
    meant = found["right"] or found["other"] or found["after"] or found["behind"]
    right = _ARTICLE.sub("", _NOT.sub("", meant).strip(" .,;!?"))
    for kind in _KINDS:
        named = list(kind.finditer(before))
        if kind.fullmatch(right) and len(named) == 1 and named[0].group().lower() != right.lower():
            return f"{before[: named[0].start()]}{right}{before[named[0].end() :]}"
    return None
