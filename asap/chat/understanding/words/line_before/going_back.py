"""Words that go back: to the run as it is, after something was supposed of it, or to what was before the last line."""

import re

_START = r"^\W*(?:(?:ok(?:ay)?|and|now|so|well|right|no|nah|never ?mind|please|let'?s|then|just|hm+|sorry)\W+)*"
_END = r"(?:\W+(?:again|please|now|then|thanks|first))*\W*$"
_RUN = (
    r"(?:normal|reality|before|now|today|(?:the |our |my )?(?:original|real|actual|old|current|recorded|present)?\s*"
    r"(?:run|config\w*|setup|settings?|values?|batch|sequence|baseline|job|record|one)"
    r"|(?:where|what|how) (?:we|it|things?) (?:was|were|have|had|run|is|are|started)|as (?:it )?(?:was|is)"
    r"|\d+(?: (?:[gt]pus?|chips?|devices?|slices?|nodes?))?"
    r"|square one|the (?:start|beginning))"
)
_THE_SUPPOSED = r"(?:what-?if|scenario|hypothetical\w*|change)"
_UNDOES = re.compile(
    rf"{_START}(?:(?:undo|revert|roll back)(?:\s+(?:that|it|this|the last (?:one|line|thing)))?"
    rf"|(?:scrap|scratch|strike|drop|cancel|delete|lose|kill|remove)\s+(?:that|it|this|the last (?:one|line|thing)))"
    rf"(?:\s+one)?{_END}",
    re.I,
)
_BACK = re.compile(
    rf"{_START}(?:(?:go(?:ing)? |switch |return |revert )?back to {_RUN}|(?:return|reset|revert)(?: (?:it|all"
    rf"|everything|that))?"
    rf"(?: to {_RUN})?|(?:undo|drop|forget|scrap|scratch|cancel|leave) (?:that|the|this) {_THE_SUPPOSED})"
    rf"{_END}",
    re.I,
)


def undoes(text: str) -> bool:
    """Whether it takes back what the last line did, and names nothing: "undo that"."""
    return _UNDOES.search(text) is not None


def goes_back(text: str) -> bool:
    """Whether it leaves what was supposed of the run: "back to normal", "undo"."""
    return undoes(text) or _BACK.search(text) is not None
