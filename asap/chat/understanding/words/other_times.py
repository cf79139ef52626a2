"""Words that set the run beside itself at another time: "it was quicker last week, what changed?"."""

import re

_EVENT = (
    r"(?:upgrad|updat|switch|mov|migrat|chang|restart|reboot|driver|release|version|image|container|merge|commit|yesterday"
    r"|week|month|monday|friday)\w*"
)
_SINCE = re.compile(
    r"\b(?:last|previous) (?:week|month|year|night|quarter|release|version|image)\b|\byesterday\b|\bused to\b"
    r"|\b(?:days?|weeks?|months?) ago\b|\bpreviously\b"
    rf"|\b(?:before|since|after) (?:the |we |i |our |last |this )?(?:\w+ )?{_EVENT}",
    re.I,
)
_CHANGED = re.compile(
    r"\bwhat(?:'s| is| has| have| did)? (?:we )?(?:chang\w*|different|happen\w*|going on)\b|\bregress\w*"
    r"|\b(?:got|gets|became|become|is now|went|runs?|suddenly) (?:\w+ )?(?:slower|faster|worse|quicker)\b"
    r"|\b(?:slower|faster|worse|quicker) (?:than before|now|again|since|after)\b"
    r"|\bsame (?:config\w*|setup|settings|code|run)\b|\b(?:dropped|slowed|degraded)\b",
    re.I,
)
_OF_VERSIONS = re.compile(
    r"\b(?:upgrad|updat|downgrad|bump)\w*\b[^.?!]*\b(?:slower|faster|worse|better|quicker|regress\w*|slowed|dropped)\b"
    r"|\bnew(?:er)? (?:\w+ )?(?:version|driver|image|container|release)\b[^.?!]*"
    r"\b(?:slower|faster|worse|quicker|slowed)\b",
    re.I,
)


_REPAIRED = re.compile(
    r"\b(?:restart|reboot|reseat|replac|clear|reinstall|kill|drain|cordon|swap|roll)\w*\b[^.?!]*"
    r"\b(?:fixed|helped|solved|worked|fine|gone|ok(?:ay)?|better|resolved|sorted|cured|back to normal)\b"
    r"|\b(?:fixed|resolved|solved|sorted) (?:itself|that|it)\b"
    r"|\b(?:problem|issue|it) (?:is|'s|has|went) (?:gone|away)\b"
    r"|\b(?:all )?(?:good|fine|ok(?:ay)?|normal) again\b",
    re.I,
)


def of_a_repair(text: str) -> bool:
    """Whether it says that something beside the plan was mended: "restarting fixed it"."""
    return _REPAIRED.search(text) is not None


def of_another_time(text: str) -> bool:
    """Whether it sets the run beside itself at another time."""
    return bool(_SINCE.search(text) and _CHANGED.search(text)) or _OF_VERSIONS.search(text) is not None
