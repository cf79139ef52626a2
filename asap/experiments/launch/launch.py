"""What a script, a manifest or a definition starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Launch:
    """One start of MaxText."""

    config: str | None
    overrides: tuple[str, ...]
    line: int
    hardware: str | None = None
    slices: int | None = None
    unknown: tuple[str, ...] = ()
    """Keys whose value is not said."""
    strays: tuple[str, ...] = ()
    """Arguments that are no ``key=value``, which MaxText refuses."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold flags of a compiler or runtime, or are one."""
    benchmark: str | None = None
    """Name of the definition that MaxText's benchmark runner is told to run; overrides are then its own."""
    others: int = 0
    """Further starts of MaxText in the same script."""
    cut: str = ""
    """What a comment in the middle of the command keeps from it."""
