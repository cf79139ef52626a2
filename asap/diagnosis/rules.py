"""The rules: each looks at the facts and returns one finding, or nothing.

A rule speaks from the noise floor upwards: a share of the time below the step-to-step variation of real runs could
not be seen in a measurement, so it is no finding.
"""

from dataclasses import dataclass

from asap.core.provenance import Provenance, Quantity
from asap.core.text import plain
from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.shares import Shares
from asap.plans import Plan
from asap.profiles import Operation, Profile

NOISE = 0.03
"""Coefficient of variation of the step time of undisturbed runs: 0.3 to 3 % over public traces."""

HBM_AVAILABLE = 15.75 / 16
"""Share of HBM that the TPU compiler lets a program use (it refuses above 15.75 of the 16 GiB of v5e)."""

STREAMING = 0.5
"""Of the bandwidth roof: below it, more of an operation's time goes to waiting than bandwidth explains."""

LEADING = 3
"""Operations named as evidence: as many as fit on one line each in a one-screen report."""


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    profile: Profile
    shares: Shares
    plan: Plan | None

    @property
    def provenance(self) -> Provenance:
        """Read from a profile, or stated by a report."""
        return Provenance.STATED if self.profile.stated else Provenance.MEASURED

    def fraction(self, value: float, source: str) -> Quantity:
        """A share as a quantity with its origin."""
        return Quantity(value=value, unit="fraction", provenance=self.provenance, source=source)


def compute_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the compute (or on-chip memory) roof."""
    share = facts.shares.relative("compute")
    if share < NOISE:
        return None
    operations = facts.shares.operations["compute"]
    efficiency = _mean_efficiency(operations)
    reach = f" at {format_percent(efficiency)} of the roofline" if efficiency is not None else ""
    return Finding(
        rule="compute_bound",
        kind=Bottleneck.COMPUTE,
        statement=f"{_of_time(facts, share)} goes to compute-bound operations{reach}.",
        share=share,
        evidence=_evidence(facts, "compute"),
    )


def hbm_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the HBM roof, and whether they stream or wait."""
    share = facts.shares.relative("hbm")
    if share < NOISE:
        return None
    operations = facts.shares.operations["hbm"]
    efficiency = _mean_efficiency(operations)
    statement = f"{_of_time(facts, share)} goes to operations bound by HBM bandwidth"
    if efficiency is not None:
        statement += f", at {format_percent(efficiency)} of it on average{_streaming(efficiency)}"
    unsharded = facts.plan is not None and facts.plan.degree("model") == 1
    reason = "; every device reads whole weight matrices, as the plan has no model axis" if unsharded else ""
    return Finding(
        rule="hbm_bound",
        kind=Bottleneck.HBM,
        statement=f"{statement}{reason}.",
        share=share,
        evidence=_evidence(facts, "hbm"),
    )


def communication_bound(facts: Facts) -> Finding | None:
    """Collectives that wait for the network, by kind."""
    share = facts.shares.relative("communication")
    if share < NOISE:
        return None
    kinds: dict[str, float] = {}
    for operation in facts.shares.operations["communication"]:
        kind = operation.collective or "a kind that is not stated"
        kinds[kind] = kinds.get(kind, 0.0) + operation.fraction
    ranked = sorted(kinds, key=lambda kind: -kinds[kind])
    return Finding(
        rule="communication_bound",
        kind=Bottleneck.COMMUNICATION,
        statement=f"{_of_time(facts, share)} goes to collectives, most to {', then '.join(ranked[:LEADING])}.",
        share=share,
        evidence=_communication_kpi(facts) + _evidence(facts, "communication"),
    )


def host_bound(facts: Facts) -> Finding | None:
    """Time in which the device waits for input, infeed or the host."""
    waited = facts.profile.kpis.input
    share = max(waited or 0.0, facts.shares.relative("host"))
    if share < NOISE:
        return None
    source = "input share of the step" if waited else "host-bound operations"
    return Finding(
        rule="host_bound",
        kind=Bottleneck.HOST,
        statement=f"{format_percent(share)} of the step waits for input or the host.",
        share=share,
        evidence=(Evidence(fact=source, quantity=facts.fraction(share, "profile")), *_evidence(facts, "host")),
        advice="look at the input pipeline and at transfers to the host before any sharding",
    )


def idle_device(facts: Facts) -> Finding | None:
    """Time in which the device does nothing."""
    idle = facts.shares.idle
    if idle is None or idle < NOISE:
        return None
    return Finding(
        rule="idle_device",
        kind=Bottleneck.IDLE,
        statement=f"the device is idle for {format_percent(idle)} of the time.",
        share=idle,
        evidence=(Evidence(fact="idle", quantity=facts.fraction(idle, "device duty cycle")),),
        advice="look for host work, checkpoints or stragglers between steps",
    )


def uneven_steps(facts: Facts) -> Finding | None:
    """Steps that vary more than undisturbed runs do: a straggler, or something beside the training."""
    kpis = facts.profile.kpis
    if not kpis.step_time_s or not kpis.step_time_stddev_s or (kpis.steps or 0) < 2:
        return None
    variation = kpis.step_time_stddev_s / kpis.step_time_s
    if variation <= NOISE:
        return None
    return Finding(
        rule="uneven_steps",
        kind=Bottleneck.IDLE,
        statement=f"step times vary by {format_percent(variation)}; undisturbed runs stay below {NOISE:.0%}.",
        evidence=(Evidence(fact="coefficient of variation", quantity=facts.fraction(variation, "step times")),),
        advice="compare hosts for a straggler, and look for checkpoints or evaluation inside the window",
    )


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


def opaque_operations(facts: Facts) -> Finding | None:
    """Custom calls that report neither FLOPs nor a bound: unknown, which is not the same as inefficient."""
    share = facts.shares.relative("opaque")
    if share < NOISE:
        return None
    return Finding(
        rule="opaque_operations",
        kind=Bottleneck.OPAQUE,
        statement=f"{_of_time(facts, share)} goes to custom calls that report no FLOPs: opaque, not inefficient.",
        share=share,
        evidence=_evidence(facts, "opaque"),
        advice="give the kernels a cost estimate (pallas_call(cost_estimate=…)) so that the profile can place them",
    )


RULES = (
    compute_bound,
    hbm_bound,
    communication_bound,
    host_bound,
    idle_device,
    uneven_steps,
    memory_capacity,
    opaque_operations,
)


def _of_time(facts: Facts, share: float) -> str:
    whole = "of the listed time" if facts.shares.partial else f"of the {facts.profile.extent}"
    return f"{format_percent(share)} {whole}"


def _streaming(efficiency: float) -> str:
    if efficiency > 1:
        return ": more than HBM can give, so caches serve a part of the bytes, or the peak is set too low"
    return ": they wait more than they stream" if efficiency < STREAMING else ""


def _mean_efficiency(operations: tuple[Operation, ...]) -> float | None:
    known = [op for op in operations if op.roofline_efficiency is not None and op.fraction > 0]
    time = sum(op.fraction for op in known)
    return sum(op.fraction * (op.roofline_efficiency or 0.0) for op in known) / time if time else None


def _communication_kpi(facts: Facts) -> tuple[Evidence, ...]:
    share = facts.profile.kpis.communication
    if share is None:
        return ()
    return (Evidence(fact="communication overhead", quantity=facts.fraction(share, "collective time / step time")),)


def _evidence(facts: Facts, resource: str) -> tuple[Evidence, ...]:
    leading = sorted(facts.shares.operations[resource], key=lambda op: -op.fraction)[:LEADING]
    return tuple(
        Evidence(fact=plain(op.name, 60), quantity=facts.fraction(op.fraction, f"self time, bound: {op.bound}"))
        for op in leading
    )
