"""Rule: HBM that is full."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import Facts

HBM_AVAILABLE = 15.75 / 16
"""Share of HBM that the TPU compiler lets a program use (it refuses above 15.75 of the 16 GiB of v5e)."""


def memory_capacity(facts: Facts) -> Finding | None:
    """HBM so full that the batch cannot grow and rematerialisation cannot be relaxed."""
    used, capacity = facts.profile.peak_hbm_bytes, facts.profile.hbm_capacity_bytes
    if not used or not capacity or used / capacity < HBM_AVAILABLE:
        return None
    return Finding(
        rule="memory_capacity",
        kind=Bottleneck.MEMORY_CAPACITY,
        statement=f"HBM is full: the peak is {format_percent(used / capacity)} of its capacity.",
        evidence=(Evidence(fact="peak HBM", quantity=facts.fraction(used / capacity, "memory profile")),),
    )
