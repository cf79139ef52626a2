"""What a user asks of an analysis beside the record: levers that may be pulled, steps to go, prices of chips."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Preferences:
    """Preferences of a user; none by default.

    Args:
        allowed: levers on request that may be pulled.
        steps_to_go: steps that are still to be trained.
        prices: of a chip-hour, by chip.
        currency: of the prices.
    """

    allowed: frozenset[str] = frozenset()
    steps_to_go: int | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = "USD"

    def to_record(self) -> dict[str, Any]:
        """For the worklog."""
        return {**asdict(self), "allowed": sorted(self.allowed)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Preferences":
        """As it was recorded; older sessions have none."""
        return cls(**{**record, "allowed": frozenset(record.get("allowed", ()))})


NO_PREFERENCES = Preferences()
