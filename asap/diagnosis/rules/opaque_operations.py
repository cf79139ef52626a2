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
        advice=_advice(facts),
    )


def _advice(facts: Facts) -> str:
    """Kernels that the user wrote can be given a cost; those of a GPU's libraries have to be looked at from outside."""
    on_gpu = facts.chip.kind == "gpu" if facts.chip else "GPU" in (facts.profile.device_type or "")
    if not on_gpu:
        return "give the kernels a cost estimate (pallas_call(cost_estimate=…)) so that the profile can place them"
    maker = f"{facts.chip.title if facts.chip else ''} {facts.profile.device_type or ''}"
    profiler = "ROCm Compute Profiler (rocprof-compute)" if "AMD" in maker else "Nsight Compute (ncu)"
    return f"XProf knows no costs of library kernels: {profiler} tells whether they wait for compute or for memory"
