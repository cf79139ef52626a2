"""Two figures in one breath, what runs and a proposal: "step 7.5s now, 6.1 with 1": each by itself, with its unit."""

import re

_PAIR = re.compile(
    r"(?P<now>[^?]*?\d[\d.]*\s?(?P<unit>ms|s|secs?|seconds?)(?:/\w+)?\s*(?:now|before|today|currently|as (?:it )?is"
    r"|(?:on|with|for) (?:the )?(?:baseline|old one|current one)))\s*(?:[,;]|->|→|\b(?:and|but|vs\.?|to)\b)+\s*"
    r"(?P<then>\d+(?:\.\d+)?)\s?(?P<own>ms|s|secs?|seconds?)?\s+(?:w|with|on|for|under|in)\s+"
    r"(?:#|proposal )?(?P<rank>[1-3])(?![\d.,]*\d|\w)(?P<rest>.*)",
    re.I,
)


def now_and_then(part: str) -> tuple[str, ...]:
    """The report of what runs and that of the proposal; the part alone where it is not both."""
    found = _PAIR.fullmatch(part)
    if found is None:
        return (part,)
    return found["now"], f"proposal {found['rank']} took {found['then']} {found['own'] or found['unit']}{found['rest']}"
