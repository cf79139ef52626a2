"""Figures of a run in a clause, by their unit: step time, MFU, tokens a second, HBM in use, slower or faster."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.statements.sporadic import without_sporadic
from asap.chat.understanding.words.doubt import has
from asap.core.units import GIB
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.evidence.plausibility import mfu_of_rate
from asap.study.study import Study

_SLOWER = re.compile(r"\b(?:slower|longer|worse|more time|slow)\b", re.I)
_FASTER = re.compile(r"\b(?:faster|quicker|shorter|better|less time|fast|speed-?up)\b", re.I)
_SHORTER = re.compile(r"\b(?:shorter|less time)\b", re.I)
_MFU = re.compile(r"\bmfu\b|\bflops? utili[sz]ation\b|\bmodel flops?\b", re.I)
_HBM = re.compile(
    r"\b(?:compiler reports|xla reports|hbm|memory|vram|nvidia-smi|peak(?:ed|s)?|allocated|reserved|high-?water"
    r"|(?:top|max)(?:e?s|p?ed)? (?:out )?(?:is |at )?(?=~?\d)"
    r"|in reality|(?:actually|really) (?:uses?|takes|needs))\b",
    re.I,
)
_TAKEN = re.compile(
    r"\s*(?:is |are |of \w+ )?(?:used|in use|taken|occupied|allocated)\b"
    r"(?! (?:by|for) (?:the )?(?:host|cpu|disk|checkpoint|data))(?![^.?!]*\b(?:host|disk|ram|checkpoint\w*)\b)",
    re.I,
)
"""Behind a size: it is what a chip holds."""
_MONITORED = re.compile(
    r"\b(?:util\w*|busy|occupancy|power|activ(?:e|ity)|duty|bound|bandwidth|traffic|roofline"
    r"|of the (?:time|step|peak))\b",
    re.I,
)
"""Shares that are not of the memory in use."""
_STEP = re.compile(r"\b(?:steps?|iter\w*|s/it)\b", re.I)
_OF_THE_RUN = re.compile(
    r"\b(?:after|within|for|until|past|every)\s+(?:(?:about|around|only|just|the first|roughly)\s+)*$", re.I
)
"""Before a time that is of the whole run, and not of a step: "died after 10 min"."""
_STEPS_TOGETHER = re.compile(
    r"\b(\d{1,6})\s+(?:steps|iterations|iters)\s+(?:(?:took|take|ran|run|needed|done|came|went|in|to|me|us|a total of"
    r"|about|around|roughly)\s+)+~?$",
    re.I,
)
"""Before a time that several steps took together: "20 steps took 31 s"."""
_EACH = re.compile(r"\s*(?:\w+\s+)?(?:each|apiece|a step|per step|/\s?step|on average|avg)\b", re.I)
_AFTERWARDS = re.compile(
    r"\b(?:after|past|behind|without|excluding|once)\s+(?:the\s+)?"
    r"(?:warm-?(?:ed )?up|compil\w+|start-?up|initiali[sz]ation)\b",
    re.I,
)
"""Says that a step is a steady one: "4.4 s after warmup"."""
_BYTES = {"GiB": float(GIB), "GB": 1e9}
_NEAR = 24
"""Characters behind a share within which "slower" or "faster" belongs to it."""


def figures_in(clause: str, amounts: Sequence[Amount], study: Study) -> list[StatedFact]:
    """The measured figures of a clause, without plan; what a later "not 8.4" corrects is left out."""
    found: list[StatedFact] = []
    for amount in without_sporadic(clause, amounts):
        if amount.before:
            continue
        fact = _figure(clause, amount, study)
        if fact is not None:
            found.append(fact)
    return found


def relative(amount: float, unit: str, slower: bool, shorter: bool = False) -> float | None:
    """Step time over that of what runs now: ``20 % faster`` is 1.2 times the speed, ``20 % shorter`` 0.8 the time."""
    if unit == "x":
        return amount if slower else 1 / amount if amount else None
    share = amount / 100
    if slower:
        return 1 + share
    return max(1 - share, 1e-3) if shorter else 1 / (1 + share)


def _is_of_the_run(clause: str, amount: Amount) -> bool:
    """Whether a time is of the whole run: by the words before it, or as minutes of which no step is spoken."""
    if _OF_THE_RUN.search(clause[: amount.start]):
        return True
    return "min" in amount.text.lower() and _STEP.search(clause) is None


def _steps(clause: str, amount: Amount) -> int:
    """Steps that a time is of."""
    found = _STEPS_TOGETHER.search(clause[: amount.start])
    return int(found[1]) or 1 if found and not _EACH.match(clause, amount.end) else 1


def _figure(clause: str, amount: Amount, study: Study) -> StatedFact | None:
    near, value = clause[amount.start : amount.end + _NEAR], amount.value
    if amount.unit == "s":
        if has("other_times", _AFTERWARDS.sub(" ", clause)) or _is_of_the_run(clause, amount):
            return None
        return StatedFact(claim=Claim.STEP_TIME, value=value / _steps(clause, amount), words=clause)
    if amount.unit in {"%", "x"} and (_SLOWER.search(near) or _FASTER.search(near)):
        slower = _SLOWER.search(near) is not None
        ratio = relative(value, amount.unit, slower, _SHORTER.search(near) is not None)
        unit = f"{amount.unit} {'slower' if slower else 'faster'}"
        return StatedFact(claim=Claim.RELATIVE, value=ratio, stated=value, unit=unit, words=clause)
    if amount.unit == "%" and _MFU.search(clause):
        return StatedFact(claim=Claim.MFU, value=value / 100, stated=value, unit="%", words=clause)
    if amount.unit == "%" and _HBM.search(clause) and not _MONITORED.search(clause):
        return StatedFact(claim=Claim.HBM_SHARE, value=value / 100, stated=value, unit="%", words=clause)
    if amount.unit in _BYTES and (_HBM.search(clause) or _TAKEN.match(clause, amount.end)):
        size = value * _BYTES[amount.unit]
        return StatedFact(claim=Claim.HBM_BYTES, value=size, stated=value, unit=amount.unit, words=clause)
    if amount.unit == "tokens/s":
        return StatedFact(claim=Claim.THROUGHPUT, value=value, words=clause)
    if amount.unit == "FLOP/s" and (mfu := mfu_of_rate(study, value)) is not None and mfu < 1:
        return StatedFact(claim=Claim.MFU, value=mfu, stated=value / 1e12, unit="TFLOP/s a chip", words=clause)
    if amount.unit == "tokens/s/chip" and study.slice is not None:
        return StatedFact(
            claim=Claim.THROUGHPUT, value=value * study.slice.devices, stated=value, unit=amount.unit, words=clause
        )
    if not amount.unit and 0 < value < 1 and _MFU.search(clause):
        return StatedFact(claim=Claim.MFU, value=value, words=clause)
    return None
