"""Figures as they were said, with their unit, as the record holds them."""

from typing import Literal

from asap.chat.understanding.statements.measurements import relative
from asap.core.errors import BadInputError
from asap.core.numbers import LARGEST_COUNT
from asap.core.units import GIB
from asap.evidence.claims import Claim

Unit = Literal[
    "s", "ms", "min", "%", "x", "% slower", "% faster", "x slower", "x faster", "GiB", "GB", "tokens/s", "count"
]

_SCALES: dict[Claim, dict[str, float]] = {
    Claim.STEP_TIME: {"s": 1.0, "ms": 1e-3, "min": 60.0},
    Claim.MFU: {"%": 1e-2},
    Claim.HBM_SHARE: {"%": 1e-2},
    Claim.HBM_BYTES: {"GiB": float(GIB), "GB": 1e9},
    Claim.THROUGHPUT: {"tokens/s": 1.0},
    Claim.BATCH: {"count": 1.0},
    Claim.SEQUENCE: {"count": 1.0},
    Claim.CONSTRAINT: {"count": 1.0},
}
_COUNTED = {Claim.BATCH, Claim.SEQUENCE, Claim.CONSTRAINT}
_RELATIVE = ("% slower", "% faster", "x slower", "x faster")
FIGURES = {*_SCALES, Claim.RELATIVE} - {Claim.CONSTRAINT}
"""Claims that are nothing without a number."""


def stated_value(claim: Claim, value: float, unit: Unit | None) -> float:
    """The figure in the unit of the record: seconds, bytes, tokens a second, a count, or a fraction.

    Raises:
        BadInputError: the unit does not measure such a thing, or the number cannot be one of it.
    """
    if not 0 < value <= LARGEST_COUNT:
        raise BadInputError(f"a number has to be above zero and at most {LARGEST_COUNT:,}", where=claim.value)
    if claim is Claim.RELATIVE and unit in _RELATIVE:
        found = relative(value, unit[0], unit.endswith("slower"))
        if found is not None:
            return found
    known = _SCALES.get(claim, {})
    if claim in _COUNTED and unit is None:
        unit = "count"
    if unit is None or unit not in known:
        takes = ", ".join(known or _RELATIVE if claim is Claim.RELATIVE else known) or "no number"
        raise BadInputError(f"{unit or 'no unit'} does not measure that", where=claim.value, hint=f"it takes {takes}")
    return value * known[unit]
