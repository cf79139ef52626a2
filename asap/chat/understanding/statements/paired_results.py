"""Results of two proposals behind both of them, each by its own: "2 beats 1: 131 vs 148 ms"."""

import re

_RANK = r"(?:proposal |#)?{}(?![.,]?\d|\s*(?:%|m?s\b|secs?\b|seconds\b))"
_PAIR = re.compile(
    rf"(?<![\w.]){_RANK.format('(?P<one>[1-3])')}\s+(?:beats|beat|and|vs\.?|versus|against|wins (?:over|against)"
    rf"|(?:is|was|came out) (?:faster|slower|quicker|better|worse) than)\s+{_RANK.format('(?P<two>[1-3])')}"
    r"(?P<between>[^\d?]{0,40}?)(?P<first>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|secs?|seconds)?\s*"
    r"(?:vs\.?|versus|against|and|to|/|,|resp\w*)\s*(?P<second>\d+(?:\.\d+)?)\s*(?P<last>ms|s|secs?|seconds)\b",
    re.I,
)


def with_results_apart(text: str) -> str:
    """The text with each of two results beside its proposal."""
    return _PAIR.sub(_apart, text)


def _apart(found: re.Match[str]) -> str:
    first = f"{found['first']} {found['unit'] or found['last']}"
    return (
        f"proposal {found['one']} measured {first}, proposal {found['two']} measured {found['second']} {found['last']}"
    )
