"""Rule: collectives on the critical path."""

from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import LEADING, STEP_TIME_VARIATION, Facts, leading_operations, share_of_time


def communication_bound(facts: Facts) -> Finding | None:
    """Collectives that wait for the network, by kind."""
    share = facts.shares.relative("communication")
    if share < STEP_TIME_VARIATION:
        return None
    kinds: dict[str, float] = {}
    for operation in facts.shares.operations["communication"]:
        kind = operation.collective or "a kind that is not stated"
        kinds[kind] = kinds.get(kind, 0.0) + operation.fraction
    ranked = sorted(kinds, key=lambda kind: -kinds[kind])
    return Finding(
        rule="communication_bound",
        kind=Bottleneck.COMMUNICATION,
        statement=f"{share_of_time(facts, share)} goes to collectives, most to {', then '.join(ranked[:LEADING])}.",
        share=share,
        evidence=_communication_kpi(facts) + leading_operations(facts, "communication"),
    )


def _communication_kpi(facts: Facts) -> tuple[Evidence, ...]:
    share = facts.profile.kpis.communication
    if share is None:
        return ()
    return (Evidence(fact="communication overhead", quantity=facts.fraction(share, "collective time / step time")),)
