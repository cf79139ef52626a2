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


COPIED = "this was copied from another run"
"""A line that tells the origin and nothing else."""
_SUBJECT = re.compile(
    r"(?:it|this|that|these|those|them|they|we|i|the|our|my|whole|all|everything|most|just|btw|fyi|simply|basically|is|are|was"
    r"|config\w*|setup|settings?|flags?|mesh|plan|layout|sharding|numbers|values|params?|parameters|yaml|toml|script|run"
    r"|job|stuff|thing|came|come|comes|taken|took|straight|over|as|tho|though|mostly|verbatim)",
    re.I,
)
"""Words beside an origin that name no setting."""


def without_origin(text: str) -> str:
    """The text without the run that something in it was copied from; :data:`COPIED` where it says no more."""
    rest = _FROM.sub(" ", _COPIED.sub(lambda found: found["what"] or " ", text)).lstrip(" ,;")
    words = re.findall(r"[^\W_]+", rest)
    return COPIED if rest != text.lstrip(" ,;") and all(map(_SUBJECT.fullmatch, words)) and "?" not in rest else rest
