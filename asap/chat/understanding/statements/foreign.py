"""Whether another run, another chip or somebody else's run is spoken of: "my buddy gets 7k tok/s"."""

import re

from asap.chat.understanding.words.doubt import has
from asap.study.study import Study

_CHIP = re.compile(r"\b(?:tpu ?)?(v[2-7][a-z]?|[abh]\d{2,3}|mi\d{3}\w?)(?:-\d+)?\b", re.I)
_PERSON = (
    r"(?:colleague|co-?worker|team-?mate|buddy|friend|he|she|someone|somebody"
    r"|(?:another|other|some|neighbou?r\w*|an?) (?:guys?|team|group|lab|person|dude)"
    r"|meta|nvidia|google|microsoft|deepseek|databricks"
    r"|(?:the |their |his |her )?(?:papers?|blogs?|docs|readme|benchmarks?|report card|model card))"
)
_OF_SOMEBODY = re.compile(
    rf"\b{_PERSON}\b(?:'s)?\s+(?:\w+\s+){{0,3}}?"
    r"(?:runs?|ran|gets?|got|has|had|sees?|saw|reports?|reach\w*|hits?|trains?|config\w*|setup|numbers?)\b",
    re.I,
)
_OF_A_PROPOSAL = re.compile(
    r"(?:\b(?:proposal|option|plan|number)\s*#?|#)\d|\b(?:ran|tried|tested|with|on)\s+[1-3](?![.,]?\d|\w)"
    r"|\b(?:baseline|our run)\b",
    re.I,
)
"""Whoever ran it: it is of this run."""


def is_foreign(clause: str, study: Study) -> bool:
    """Whether what a clause reports is of another run than this one."""
    own = study.slice.chip.name.lower() if study.slice else ""
    other_chip = any(not own.startswith(chip.lower()) for chip in _CHIP.findall(clause))
    of_somebody = _OF_SOMEBODY.search(clause) is not None and not _OF_A_PROPOSAL.search(clause)
    return has("elsewhere", clause) or of_somebody or other_chip
