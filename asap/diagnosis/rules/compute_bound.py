"""Rule: compute-bound operations."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Finding
from asap.diagnosis.facts import (
    STEP_TIME_VARIATION,
    Facts,
    by_name,
    leading_operations,
    mean_efficiency,
    share_of_time,
)


def compute_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the compute (or on-chip memory) roof."""
    share = facts.shares.relative("compute")
    if share < STEP_TIME_VARIATION:
        return None
    operations = facts.shares.operations["compute"]
    efficiency = mean_efficiency(operations)
    reach = f" at {format_percent(efficiency)} of the roofline" if efficiency is not None else ""
    return Finding(
        rule="compute_bound",
        kind=Bottleneck.COMPUTE,
        statement=f"{share_of_time(facts, share)} goes to compute-bound operations{reach}{by_name(operations)}.",
        share=share,
        evidence=leading_operations(facts, "compute"),
    )
