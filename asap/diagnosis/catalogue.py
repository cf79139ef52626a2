"""Causes that the operations of a profile show: ``causes.toml``, each an entry with its source and its words."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from asap.diagnosis.diagnosis import Bottleneck, Cause
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts
from asap.profiles import Operation


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Bottleneck
    pattern: str | None = None
    collective: str | None = None
    unless: str | None = None
    gain: float
    seen: str
    source: str
    advice: dict[str, str]


@cache
def _entries() -> tuple[_Entry, ...]:
    text = files("asap.diagnosis").joinpath("causes.toml").read_text(encoding="utf-8")
    return tuple(_Entry.model_validate(entry) for entry in tomllib.loads(text)["cause"])


def causes_of(facts: Facts) -> tuple[Cause, ...]:
    """The causes that a profile shows, by what the step could gain at most; several may name the same time."""
    operations = facts.profile.operations
    found = [(entry, _share(entry, operations)) for entry in _entries() if not _excluded(entry, operations)]
    causes = [_cause(facts, entry, share) for entry, share in found if share >= STEP_TIME_VARIATION]
    return tuple(sorted(causes, key=lambda cause: -cause.gain))


def _excluded(entry: _Entry, operations: tuple[Operation, ...]) -> bool:
    return entry.unless is not None and any(re.search(entry.unless, op.name, re.IGNORECASE) for op in operations)


def _share(entry: _Entry, operations: tuple[Operation, ...]) -> float:
    if entry.collective is not None:
        return sum(op.fraction for op in operations if op.collective == entry.collective)
    pattern = re.compile(entry.pattern or "", re.IGNORECASE)
    return sum(op.fraction for op in operations if not op.is_collective and pattern.search(op.name))


def _cause(facts: Facts, entry: _Entry, share: float) -> Cause:
    on_pytorch = facts.stack not in (None, "maxtext") or any("::" in op.name for op in facts.profile.operations)
    return Cause(
        name=entry.name,
        kind=entry.kind,
        seen=entry.seen,
        certainty="stated" if entry.collective else "from names",
        share=share,
        gain=share * entry.gain,
        advice=entry.advice["pytorch" if on_pytorch else "xla"],
        source=entry.source,
    )
