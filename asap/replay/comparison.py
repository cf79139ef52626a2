"""Compares the records of two sessions; only names that differ from run to run are made equal."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asap.core.text import plain
from asap.replay.turns import RecordedTurn
from asap.sharding_memory import Record

LONGEST_VALUE = 160
ROUNDING = 1e-9
"""Relative: far above what the order of a sum changes, far below what anyone reads."""

_CALL = re.compile(r"adk-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Step = tuple[Record, str]
"""A record, and its text as it is compared."""


@dataclass(frozen=True)
class Divergence:
    """The first record that differs."""

    sequence: int | None
    step: str
    place: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        at = f"record {self.sequence}" if self.sequence is not None else "the end"
        return f"diverged at {at} ({self.step}), {self.place}: recorded {self.recorded}, replayed {self.replayed}"


def comparable_steps(turns: Sequence[RecordedTurn], names: dict[str, str] | None = None) -> list[Step]:
    """Each record as text in which what differs from run to run is made equal."""
    return [
        (record, _text(record, {**(names or {}), turn.model: "MODEL"})) for turn in turns for record in turn.compared
    ]


def _text(record: Record, names: dict[str, str]) -> str:
    text = json.dumps({"kind": record.kind.value, "payload": record.payload}, sort_keys=True)
    for name, equal in names.items():
        text = text.replace(name, equal)
    return _CALL.sub("CALL", text)


def first_divergence(one: list[Step], other: list[Step]) -> Divergence | None:
    """The first step that differs by more than rounding; ``None`` if there is none."""
    for (record, text), (_, again) in zip(one, other, strict=False):
        if text != again and (difference := _first_difference(json.loads(text), json.loads(again), "")):
            place, was, now = difference
            return Divergence(record.sequence, _name(record), place or "the whole record", _shown(was), _shown(now))
    if len(one) == len(other):
        return None
    longer = one if len(one) > len(other) else other
    record = longer[min(len(one), len(other))][0]
    recorded, replayed = (_name(record), "nothing") if longer is one else ("nothing", _name(record))
    return Divergence(record.sequence if longer is one else None, _name(record), "the record", recorded, replayed)


def _first_difference(was: Any, now: Any, place: str) -> tuple[str, Any, Any] | None:
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(f"{place}.{key}".lstrip("."), was.get(key), now.get(key)) for key in dict.fromkeys((*was, *now))]
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = [(f"{place}[{n}]", a, b) for n, (a, b) in enumerate(zip(was, now, strict=True))]
    else:
        return None if _equal(was, now) else (place, was, now)
    found = (_first_difference(a, b, at) for at, a, b in pairs)
    return next((difference for difference in found if difference), None)


def _equal(was: Any, now: Any) -> bool:
    """Whether two values are one, figures up to the rounding in which processors differ."""
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=ROUNDING)
    return was == now


def _name(record: Record) -> str:
    payload = record.fields
    who = payload.get("tool") or payload.get("agent") or payload.get("node") or payload.get("event") or ""
    return f"{record.kind.value} {plain(who, 60)}".strip()


def _shown(value: Any) -> str:
    return plain(json.dumps(value), LONGEST_VALUE)
