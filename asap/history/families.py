"""What families of changes (``fused cross-entropy``) brought in the records, by how alike those runs are."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from asap.history.query import NEUTRAL
from asap.history.record import HistoryRecord
from asap.history.similarity import chip_likeness

_DOUBT = 1.0
"""A family is believed as if one more run like this one had shown nothing."""
_DECAY = 4.0
"""Doublings of parameters or sequence at which likeness falls to 1/e."""


@dataclass(frozen=True)
class Family:
    """Changes of one kind, with what they brought."""

    name: str
    gain: float
    records: tuple[HistoryRecord, ...]
    weights: tuple[float, ...]


def ranked(
    records: Iterable[HistoryRecord], chip: str | None, parameters: float | None = None, sequence: int | None = None
) -> list[Family]:
    """Families of changes with a kind, the largest gain after doubt first; other kinds of chips are left out. A run
    that got slower, or had no room, counts as no gain: what a test shows not to help is not kept."""
    by_name: dict[str, list[tuple[float, HistoryRecord]]] = {}
    for record in (one for one in records if one.kind is not None and one.other_changes):
        if (alike := _likeness(record, chip, parameters, sequence)) > 0:
            by_name.setdefault(family_of(record), []).append((alike, record))
    found = []
    for name, weighed in by_name.items():
        weights, of = zip(*weighed, strict=True)
        gains = sum(w * max(math.log(one.speedup or 1.0), 0.0) for w, one in weighed)
        found.append(Family(name, gains / (sum(weights) + _DOUBT), of, weights))
    return sorted(found, key=lambda one: -one.gain)


def family_of(record: HistoryRecord) -> str:
    """What stands before the colon of its change."""
    return record.other_changes[0].partition(":")[0]


def _likeness(record: HistoryRecord, chip: str | None, parameters: float | None, sequence: int | None) -> float:
    pairs = ((parameters, record.model.parameters), (sequence, record.workload.sequence_length))
    falls = [math.exp(-abs(math.log2(one / other)) / _DECAY) if one and other else NEUTRAL for one, other in pairs]
    alike = chip_likeness(chip, record.hardware.chip or "") if chip else NEUTRAL
    return (0.0 if math.isnan(alike) else alike) * record.confidence * math.prod(falls)
