"""Placeholders for what a message names, so that it is compared with the examples by what it says of them."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.plans.prose import plan_spans


def masked(text: str, found: Sequence[Amount], named: Sequence[str] = (), lone: Sequence[Amount] = ()) -> str:
    """A message with placeholders for what it names, as the examples have them.

    Args:
        text: the message; raises PlanError where a plan in it is malformed.
        found: its amounts.
        named: operations that it names.
        lone: amounts that may be ranks.
    """
    spans = [(start, end, "zplan") for start, end, _ in plan_spans(text)]
    for pattern, mask in _MASKS:
        spans += [(m.start(), m.end(), mask) for m in pattern.finditer(text)]
    for name in named:
        spans += [(m.start(), m.end(), "zop") for m in re.finditer(loose(name), text, re.I)]
    spans += [(a.start, a.end, "zrank") for a in lone]
    digits = [(a, re.match(r"[-−]?[\d.,]+", text[a.start :])) for a in found]
    spans += [(a.start, a.start + match.end(), "znum") for a, match in digits if match]
    for start, end, mask in sorted(_separate(spans), reverse=True):
        text = f"{text[:start]} {mask} {text[end:]}"
    text = _CONTRACTED.sub(r"\1 is", text)
    return _CODE.sub(lambda match: " zplan " if "zplan" in match.group() else " ", text)


_CONTRACTED = re.compile(r"\b(what|who|where|how|that|there|it)'s\b", re.I)
_CODE = re.compile(r"```.*?(?:```|$)", re.S)
"""A block of code: what it runs says nothing of what is asked of it."""
_MASKS = (
    (
        re.compile(
            r"\b(?:the\s+)?(?:proposals?|options?|candidates?|numbers?|no\.)\s*#?\s*\d{1,2}\b|#\d{1,2}\b"
            r"|\b(?:the\s+)?(?:proposal|option|number)\s+(?:one|two|three)\b|\b(?:plan\s+\d{1,2}|runner-up)\b"
            r"|\bthe\s+(?:first|second|third)(?:\s+(?:one|proposal|option|plan))?\b"
            r"|\b(?:first|second|third) (?:one|proposal)\b",
            re.I,
        ),
        "zrank",
    ),
    (re.compile(r"\b(?:v\d[a-z]{0,2}-\d+|[ah]\d{3}-\d+)\b", re.I), "zhw"),
)


def _separate(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for start, end, mask in spans:
        if end > start and all(end <= s or start >= e for s, e, _ in kept):
            kept.append((start, end, mask))
    return kept


def loose(name: str) -> str:
    """A pattern for the name of an operation, however its parts are joined."""
    return r"[-_ .]".join(re.escape(part) for part in re.split(r"[-_ .]+", name) if part)
