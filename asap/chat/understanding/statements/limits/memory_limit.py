"""The most HBM that a plan may take: "can't do more than 70GB", "keep it under 60 GiB"."""

import re

from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.quantities.hardware.network import speaks_of_network
from asap.chat.understanding.statements.outcomes import happened, reports
from asap.core.units import GIB

_BYTES = {"GiB": float(GIB), "GB": 1e9}
_NO_MORE = re.compile(
    r"(?:\b(?:not|no|never|can ?not|nothing)\b|n't\b)[^.?!;]{0,30}\b(?:more|over|above|beyond|past|exceed\w*|higher"
    r"|larger|bigger)\b"
    r"|\b(?:keep\w*|stay\w*|remain\w*|must|ha(?:ve|s) to|need to|should|get|limit\w*|cap(?:ped)?)\b[^.?!;]{0,30}"
    r"\b(?:under|below|within|inside|to|at)\b"
    r"|\b(?:at most|max(?:imum)?|limit|cap|ceiling|budget)\b|\bonly\b[^.?!;]{0,20}\b(?:have|get|got|there)\b"
    r"|\b(?:have|get|got|there (?:is|are)) only\b|<=?|≤",
    re.I,
)
_WITHIN = re.compile(r"\b(?:under|below|within|inside|less than|at most|up to|max(?:imum)?|in|into)\b|<=?|≤", re.I)
"""The same where plans are looked for: "anything under 60 GiB?"."""
_CAP = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|but|and|so|please|just|we|i|it|can|must|should|has to|have to|hbm|memory)\W+)*(?:to )?"
    r"(?:(?:max(?:imum)?|at most|up to|(?:no|not) more than|<=?|≤)\s*(?:of\s+)?\d"
    r"|(?:limit(?:ed)?|cap(?:ped)?|stay\w*|keep\w*)\s+(?:(?:it|of|to|at|is|below|under|within|hbm|memory)\s+)*\d)",
    re.I,
)
"""So many bytes and no more, in a few words: "max 70 GiB hbm", "stay below 60GB"; a "max hbm" is what was used."""
_IN_USE = re.compile(
    r"\b(?:us(?:ed|es|ing)|tak(?:es|ing)|allocat\w+|shows?|reports?)\b"
    r"|\b(?:runs?|trains?|works?|goes|fits?)\s+(?:just )?(?:fine|ok(?:ay)?|well|good|stabl[ey]|smoothly|happily)\b",
    re.I,
)
_ELSEWHERE = re.compile(
    r"\b(?:host|cpu|node|system|disk|checkpoint\w*|data ?set|ram|dram|network|nic|nvlink|pci-?e|bandwidth)\b|/\s?s",
    re.I,
)


def memory_limit_in(clause: str, *, sought: bool = False) -> float | None:
    """Bytes on one chip; ``None`` where a clause sets no limit, or reports what was used.

    Args:
        clause: a part of a line.
        sought: plans are looked for in it.
    """
    sizes = [amount for amount in amounts(clause) if amount.unit in _BYTES]
    limits = (_WITHIN if sought else _NO_MORE).search(clause)
    capped = _CAP.search(clause) is not None and not reports(clause)
    reported = not sought and not capped and (happened(clause) or _IN_USE.search(clause))
    if len(sizes) != 1 or limits is None or _ELSEWHERE.search(clause) or speaks_of_network(clause) or reported:
        return None
    return sizes[0].value * _BYTES[sizes[0].unit]
