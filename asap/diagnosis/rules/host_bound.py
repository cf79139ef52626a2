"""Rule: waiting for input or the host."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, leading_operations, spelled


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
        statement=f"{format_percent(share)} of the step waits for input or the host{_meanwhile(facts)}.",
        share=share,
        evidence=(Evidence(fact=source, quantity=facts.fraction(share, "profile")), *leading_operations(facts, "host")),
        advice=_advice(facts),
    )


def _meanwhile(facts: Facts) -> str:
    return f": {spelled(facts.profile.host)}" if facts.profile.host else ""


def _advice(facts: Facts) -> str:
    """The input pipeline only where the recording shows it: infeed of a TPU, or time in a data loader."""
    host = facts.profile.host
    if "loader" in host or (not host and "TPU" in (facts.profile.device_type or "")):
        return "look at the input pipeline before any sharding"
    if host:
        return f"look at what the host does meanwhile before any sharding: {spelled(host)}"
    return (
        "the recording names no data loader: look at what the host does between launches (synchronisation, compilation,"
        " Python) before any sharding"
    )
