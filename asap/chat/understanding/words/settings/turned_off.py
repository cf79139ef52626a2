"""A technique that is off in what is asked, said behind its name: "vpp off", "what if offload is disabled"."""

import re

from asap.chat.understanding.words.dislikes import NAMED

_GONE = r"(?:off(?! (?:the|of|nvlink|limits|to|by)\b)|disabled|removed|gone|switched off|turned off|out of the picture)"
_OFF = re.compile(rf"\b(?:the )?(?P<name>{NAMED})\s+(?:(?P<verb>is|are|was|were)\s+)?{_GONE}(?![\w-])", re.I)
_SUPPOSED = re.compile(r"\b(?:if|with|suppose|say|assum\w+|imagine|had)\b", re.I)
_IN_PLACE_OF = re.compile(
    r"\b(?P<own>[tpec]p)\s?=?\s?(?P<degree>\d+)\s+(?:instead of|rather than|in place of)\s+(?:the )?"
    r"(?P<other>[tpec]p)(?![a-z])(?:\s?=?\s?\d+)?",
    re.I,
)


def with_axis_in_place(text: str) -> str:
    """The text with an axis of degree one where another takes its place: "pp2 instead of tp2"."""

    def put(found: re.Match[str]) -> str:
        own, other = found["own"].lower(), found["other"].lower()
        return found.group() if own == other else f"{own}={found['degree']} {other}=1"

    return _IN_PLACE_OF.sub(put, text)


def with_technique_off(text: str) -> str:
    """The text with "without" before what is off; "cp is off" alone tells of the run and stays as it is."""

    def put_before(found: re.Match[str]) -> str:
        tells = found["verb"] and not _SUPPOSED.search(text[: found.start()])
        return found.group() if tells else f"without {found['name']}"

    return re.sub(r"\bwith without\b", "without", _OFF.sub(put_before, text))
