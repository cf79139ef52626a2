"""Words that ask whether something pays: "is remat worth it here?", "does CP buy us anything?"."""

import re

from asap.plans.axes import WORDS, Axis

_PAYS = (
    r"worth (?:it|the\b|having|keeping|using|doing|our while)|pay(?:s|ing)? off|pull(?:s|ing)? its weight"
    r"|earn(?:s|ing)? (?:its|their) keep|(?:buy|bring|gain|giv)(?:s|es?|ing)? (?:us|me) (?:any|some|much)\w*"
    r"|(?:any|much) (?:use|good)\b|help(?:s|ing)? (?:us |me )?(?:at all|here|on this run|in this run)"
)
_WORTH = re.compile(rf"\b(?:is|are|was|does|do|would|will|could)(?:n't)?\b[^.?!]*\b(?:{_PAYS})", re.I)
_ANOTHER = re.compile(r"\b(?:more|less|higher|lower|bigger|smaller|doubl\w+|halv\w+|going|from|instead|rather)\b", re.I)
_THERE = re.compile(r"\b(?:there|in that case|on top|as well|that plan|that one|then)\b", re.I)
_SHORT = re.compile(r"(?<![\w=-])(fsdp|dp|tp|cp|pp|ep)(?![\w=-]|\s*\d)", re.I)


def asks_worth(text: str) -> bool:
    """Whether it asks if something that is on or off pays, and not whether more or less of it does."""
    return _WORTH.search(text) is not None and _ANOTHER.search(text) is None


def of_what_was_spoken_of(text: str) -> bool:
    """Whether it asks so of the plan that was spoken of last: "is it worth it there?"."""
    return _THERE.search(text) is not None


def axis_in_short(text: str) -> Axis | None:
    """The axis of the only short name in a text: "does PP buy us anything?"."""
    named: set[Axis] = {WORDS[name.lower()] for name in _SHORT.findall(text)}
    return named.pop() if len(named) == 1 else None
