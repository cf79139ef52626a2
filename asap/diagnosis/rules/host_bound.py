"""Rule: waiting for input or the host."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, leading_operations


def host_bound(facts: Facts) -> Finding | None:
    """Time in which the device waits for input, infeed or the host."""
    waited = facts.profile.kpis.input
    share = max(waited or 0.0, facts.shares.relative("host"))
    if share < STEP_TIME_VARIATION:
        return None
    source = "input share of the step" if waited else "host-bound operations"
    return Finding(
        rule="host_bound",
        kind=Bottleneck.HOST,
        statement=f"{format_percent(share)} of the step waits for input or the host.",
        share=share,
        evidence=(Evidence(fact=source, quantity=facts.fraction(share, "profile")), *leading_operations(facts, "host")),
        advice=_advice(facts),
    )


def _advice(facts: Facts) -> str:
    """The input pipeline only where the recording shows it: infeed of a TPU, or waiting for a data loader."""
    loads = facts.replay is not None and any(each.change == "remove:dataloader" for each in facts.replay.shortened_by)
    if loads or "TPU" in (facts.profile.device_type or ""):
        return "look at the input pipeline before any sharding"
    return (
        "the recording names no data loader: look at what the host does between launches (synchronisation, compilation,"
        " Python) before any sharding"
    )
