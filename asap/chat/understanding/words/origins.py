"""Where a setting was copied from, which is another run and changes nothing of this one: "from the 13b recipe"."""

import re

_BE = r"(?:(?:is|was|were|are|got|just|simply|probably|it'?s)\s+)*"
_TAKEN = (
    r"(?:copied|copy-?pasted|pasted|inherited|borrowed|stolen|lifted|cloned|forked|reused|carried over|left ?over"
    r"|ported|grabbed|adapted)"
)
_OWNER = r"(?:the|an?|our|my|his|her|their|some|that|another|somebody's|\w+'s)"
_MODEL_RUN = r"(?:recipe|cookbook|tutorial|template|example|blog(?: ?post)?|repo|docs|quickstart)s?"
_RUN = r"(?:run|job|script|config\w*|setup|launch\w*|yaml|toml)s?"
_COPIED = re.compile(
    rf"\s*\b{_BE}(?P<verb>{_TAKEN})\b(?P<what>(?:\s+(?:it|them|this|that|over|everything|(?:the|all|our|these) \w+))*)"
    r"\s+(?:over\s+)?(?:from|off|of)\s+[^.?!;,]*",
    re.I,
)
_FROM = re.compile(
    rf"\s*\b{_BE}from\s+{_OWNER}\s+(?:[\w.-]+\s+){{0,3}}(?:{_MODEL_RUN}|(?<=\db )(?:{_RUN}))\b",
    re.I,
)


def without_origin(text: str) -> str:
    """The text without the run that something in it was copied from."""
    return _FROM.sub(" ", _COPIED.sub(lambda found: found["what"] or " ", text)).lstrip(" ,;")
