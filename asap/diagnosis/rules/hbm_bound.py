"""Rule: operations bound by HBM bandwidth."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Finding
from asap.diagnosis.facts import (
    STEP_TIME_VARIATION,
    STREAMING,
    Facts,
    by_name,
    leading_operations,
    mean_efficiency,
    share_of_time,
)


def hbm_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the HBM roof, and whether they stream or wait."""
    share = facts.shares.relative("hbm")
    if share < STEP_TIME_VARIATION:
        return None
    operations = facts.shares.operations["hbm"]
    efficiency = mean_efficiency(operations)
    statement = f"{share_of_time(facts, share)} goes to operations bound by HBM bandwidth{by_name(operations)}"
    if efficiency is not None:
        statement += f", at {format_percent(efficiency)} of the peak on average{_streaming(efficiency)}"
    unsharded = facts.plan is not None and facts.plan.degree("model") == 1
    reason = "; every device reads whole weight matrices, as the plan has no model axis" if unsharded else ""
    return Finding(
        rule="hbm_bound",
        kind=Bottleneck.HBM,
        statement=f"{statement}{reason}.",
        share=share,
        evidence=leading_operations(facts, "hbm"),
    )


def _streaming(efficiency: float) -> str:
    if efficiency > 1:
        return ": more than HBM can give, so caches serve a part of the bytes, or the peak is set too low"
    return ": they wait more than they stream" if efficiency < STREAMING else ""
