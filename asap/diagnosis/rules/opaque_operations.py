"""Rule: custom calls without a cost estimate."""

from asap.diagnosis.diagnosis import Bottleneck, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, leading_operations, share_of_time


def opaque_operations(facts: Facts) -> Finding | None:
    """Custom calls that report neither FLOPs nor a bound: unknown, which is not the same as inefficient."""
    share = facts.shares.relative("opaque")
    if share < STEP_TIME_VARIATION:
        return None
    return Finding(
        rule="opaque_operations",
        kind=Bottleneck.OPAQUE,
        statement=f"{share_of_time(facts, share)} goes to custom calls that report no FLOPs: opaque, not inefficient.",
        share=share,
        evidence=leading_operations(facts, "opaque"),
        advice="give the kernels a cost estimate (pallas_call(cost_estimate=…)) so that the profile can place them",
    )
