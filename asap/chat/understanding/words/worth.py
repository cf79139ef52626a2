"""Words that ask whether something pays: "is remat worth it here?", "does CP buy us anything?"."""

import re

from asap.plans.axes import WORDS, Axis

_PAYS = (
    r"worth (?:it|the\b|having|keeping|using|doing|our while)|pay(?:s|ing)? off|pull(?:s|ing)? its weight"
    r"|earn(?:s|ing)? (?:its|their) keep|(?:buy|bring|gain|giv)(?:s|es?|ing)? (?:us|me) (?:any|some|much)\w*"
    r"|(?:any|much) (?:use|good)\b|help(?:s|ing)? (?:us |me )?(?:at all|here|on this run|in this run)"
    r"|(?:any |much )?(?:sense|point)\b|need(?:ed)?(?! (?:to|from|more|less|fewer)\b)"
    r"|necessary|required|pointless|overkill|excessive|wasteful"
    r"|slow(?:s|ing)? (?:\w+ )?(?:down|things)|slow(?:s|ing)? (?:us|it|this)\b|speed(?:s|ing)? (?:\w+ )?(?:up|things)"
    r"|cost(?:s|ing)? (?:us |me )?(?:any|much|a lot|time|perf|throughput|speed)\w*"
    r"|mak(?:e|es|ing) (?:\w+ ){1,3}(?:faster|slower)"
    r"|useless|too much|too (?:small|short|few|little|tiny) (?:for|to)|(?:a )?(?:mistake|waste)"
    r"|dumb|stupid|silly|nonsense|a bad idea"
)
_WORTH = re.compile(rf"\b(?:is|are|was|does|do|would|will|could)(?:n't)?\b[^.?!]*\b(?:{_PAYS})", re.I)
_VERDICT = re.compile(
    r"\bshould(?:n't)? (?:i|we)\b|\b(?:would|does|do|will|could|can|did)(?:n't)?\b[^.?!]*\b(?:help|pay|buy|bring"
    r"|gain|hurt|matter)s?\b"
    r"|\b(?:any|some) (?:gain|point|use|benefit)\b|\bworth\b|\bmake (?:any |a )?(?:sense|difference)\b"
    r"|\b(?:good|bad) idea\b|\brecommend\w*"
    r"|\b(?:halv|doubl|hurt|kill|tank|cost|slow|speed|cut|sav|reduc|improv|ruin|wreck|destroy|eat)\w*\b[^.?!]*"
    r"\b(?:no|right|correct|(?:does|is|would|will)(?:n't)? it|true)\W*$",
    re.I,
)
_ANOTHER = re.compile(r"\b(?:more|less|higher|lower|bigger|smaller|doubl\w+|halv\w+|going|from|instead|rather)\b", re.I)
_THERE = re.compile(r"\b(?:there|in that case|on top|as well|that plan|that one|then)\b", re.I)
_SHORT = re.compile(r"(?<![\w=-])(fsdp|dp|tp|cp|pp|ep)(?![\w=-]|\s*\d)", re.I)


def asks_worth(text: str) -> bool:
    """Whether it asks if something that is on or off pays, and not whether more or less of it does."""
    return _WORTH.search(text) is not None and _ANOTHER.search(text) is None


def asks_verdict(text: str) -> bool:
    """Whether it asks to be told if something is to be done: "should we use fp8?", "is it worth it?"."""
    return _VERDICT.search(text) is not None or asks_worth(text)


def of_what_was_spoken_of(text: str) -> bool:
    """Whether it asks so of the plan that was spoken of last: "is it worth it there?"."""
    return _THERE.search(text) is not None


def axes_in_short(text: str) -> tuple[Axis, ...]:
    """The axes of the short names in a text: "does PP buy us anything?"."""
    return tuple(dict.fromkeys(WORDS[name.lower()] for name in _SHORT.findall(text)))
