"""A technique that is off in what is asked, said behind its name: "vpp off", "what if offload is disabled"."""

import re

from asap.chat.understanding.words.dislikes import NAMED

_GONE = r"(?:off(?! (?:the|of|nvlink|limits|to|by)\b)|disabled|removed|gone|switched off|turned off|out of the picture)"
_OFF = re.compile(rf"\b(?:the )?(?P<name>{NAMED})\s+(?:(?P<verb>is|are|was|were)\s+)?{_GONE}(?![\w-])", re.I)
_SUPPOSED = re.compile(r"\b(?:if|with|suppose|say|assum\w+|imagine|had)\b", re.I)


def with_technique_off(text: str) -> str:
    """The text with "without" before what is off; "cp is off" alone tells of the run and stays as it is."""

    def put_before(found: re.Match[str]) -> str:
        tells = found["verb"] and not _SUPPOSED.search(text[: found.start()])
        return found.group() if tells else f"without {found['name']}"

    return re.sub(r"\bwith without\b", "without", _OFF.sub(put_before, text))
