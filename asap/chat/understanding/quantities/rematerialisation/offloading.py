"""What a sentence moves between HBM and host memory: "offload the optimizer", "the moments back to HBM"."""

import re

from asap.plans.remat import Offload

_WHAT: tuple[tuple[Offload, str], ...] = (
    ("optimizer", r"optimi[sz]er(?:'s)?(?: states?)?|adam(?: states?)?|moments?"),
    ("parameters", r"parameters?|params|(?:master )?weights"),
)
_MOVE = r"(?:offload\w*|put\w*|mov\w+|keep\w*|kept|hold\w*|plac\w+|push\w*|park\w*|stor\w+|bring\w*|with)"
_TO_HOST = re.compile(rf"\boffload\w*|\b{_MOVE}\b.*\b(?:host|cpu)\b", re.I)
_TO_DEVICE = re.compile(
    r"\b(?:no|not|without|stop|disabl\w+|drop\w*|off)\b.*\boffload\w*|\boffload\w* off\b|n't offload"
    r"|\b(?:put\w*|mov\w+|bring\w*|tak\w+)\b.*\b(?:back|off the (?:host|cpu)"
    r"|(?:in|into|on|onto|to) (?:the )?(?:hbm|device|gpu|tpu|chip))\b",
    re.I,
)
_ACTIVATIONS = re.compile(r"\bactivations?\b|\bremat\w*", re.I)
_IS_SO = re.compile(r"^\W*(?:is|are|was|were)\b|\b(?:is|are)\s+(?:already\s+|currently\s+)?offloaded\b", re.I)
"""Asks or says how it is now."""
_SUPPOSED = re.compile(r"\b(?:if|suppose|assum\w+|imagine)\b", re.I)


def offloading_in(text: str) -> tuple[tuple[Offload, bool], ...]:
    """What a text moves, each with whether to the host; empty where it moves nothing.

    Without a name nothing is to be offloaded: "without the offload".
    """
    if _IS_SO.search(text) and not _SUPPOSED.search(text):
        return ()
    to_host = not _TO_DEVICE.search(text)
    if to_host and not _TO_HOST.search(text):
        return ()
    named: list[Offload] = [what for what, words in _WHAT if re.search(rf"\b(?:{words})\b", text, re.I)]
    if not named and not to_host and not _ACTIVATIONS.search(text):
        named = [what for what, _ in _WHAT]
    return tuple((what, to_host) for what in named)


def leaves_host(moved: tuple[tuple[Offload, bool], ...]) -> bool:
    """Whether nothing at all is to be kept in host memory: "without the offload"."""
    return dict(moved) == {what: False for what, _ in _WHAT}
