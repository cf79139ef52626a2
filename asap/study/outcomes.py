"""What came of the memory of plans of a run: it ran, it died, or its peak was read."""

from dataclasses import dataclass

from asap.experiments import Experiment
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


def outcome_of_log(experiment: Experiment) -> MemoryOutcome | None:
    """What the log of the run says of its memory: it ran out, it ran within its peak; ``None`` where neither.

    What the allocator holds counts where it is known, else what it gave; what XLA says that a program needs counts too.
    """
    observed, plan = experiment.observed, experiment.plan
    if observed is None or plan is None:
        return None
    measured, ending = observed.measured, observed.ending
    if ending.kind == "out_of_memory":
        return MemoryOutcome(plan, False, ending.needed_bytes, observed.file)
    peak = measured.reserved_memory_bytes or measured.peak_memory_bytes
    ran = measured.step.steps > 0 or measured.tokens_per_second_per_device is not None
    return MemoryOutcome(plan, True, peak, observed.file) if ran and peak else None
