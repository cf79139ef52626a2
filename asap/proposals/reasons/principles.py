"""Why a change of one axis or lever helps, what it costs, and the note that says so."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Direction = Literal["more", "less"]


@dataclass(frozen=True)
class Principle:
    """What one change of one axis does, and where to read about the part of it that most needs a source."""

    reason: str
    trade_off: str
    claim: Literal["reason", "trade_off"]
    note: str
    """ID in the knowledge base."""

    @property
    def claimed(self) -> str:
        """The sentence that the note stands behind."""
        return self.reason if self.claim == "reason" else self.trade_off


def _read() -> dict[tuple[str, Direction], Principle]:
    table = tomllib.loads(Path(__file__).with_name("principles.toml").read_text(encoding="utf-8"))
    return {(name, way): Principle(**said) for name, ways in table.items() for way, said in ways.items()}


PRINCIPLES = _read()
HOST_FOR_RECOMPUTATION = PRINCIPLES["host_for_recomputation", "less"]
HOST_MAKES_ROOM = PRINCIPLES["host_makes_room", "less"]
