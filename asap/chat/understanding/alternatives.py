"""Two values of one thing in one question, "fp32 or bf16 moments": the question with each of them."""

import re

_EITHER = re.compile(r"(?<![\w.])(?P<one>[\w.+-]*\w)\s*(?:,\s*)?\b(?:or|vs\.?|versus)\s+(?P<two>\w[\w.+-]*)", re.I)


def sides_in(text: str) -> tuple[str, str] | None:
    """What stands before and behind the one "or" or "versus" of a text; ``None`` where there is none, or more."""
    found = list(_EITHER.finditer(text))
    if len(found) != 1:
        return None
    (either,) = found
    return text[: either.end("one")], text[either.start("two") :]


def alternatives_in(text: str) -> tuple[str, str] | None:
    """The text with the first and with the second of two words that "or" or "versus" joins.

    ``None`` without them, or if one of them alone is a number.
    """
    found = list(_EITHER.finditer(text))
    if len(found) != 1:
        return None
    (either,) = found
    if either["one"][0].isdigit() != either["two"][0].isdigit():
        return None
    one, two = (f"{text[: either.start()]}{either[word]}{text[either.end() :]}" for word in ("one", "two"))
    return one, two
