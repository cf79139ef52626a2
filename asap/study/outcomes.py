"""What came of the memory of plans of a run: it ran, it died, or its peak was read."""

from dataclasses import dataclass

from asap.plans import Plan


@dataclass(frozen=True)
class MemoryOutcome:
    """One outcome.

    Args:
        plan: that was run, or compiled.
        fitted: whether it did; None where a peak alone is known.
        peak_bytes: of the fullest device.
        source: who says so.
    """

    plan: Plan
    fitted: bool | None = None
    peak_bytes: float | None = None
    source: str = "a run"
