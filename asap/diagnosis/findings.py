"""Each rule looks at the facts and returns one finding, or none: a resource and its share."""

from asap.core.units import format_percent, format_rate
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import (
    STEP_TIME_VARIATION,
    STREAMING,
    Facts,
    by_name,
    categories,
    leading_operations,
    mean_efficiency,
    share_of_time,
    spelled,
)
from asap.stacks.launchers import Stack
from asap.stacks.registry import contracts


def compute_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the compute (or on-chip memory) roof."""
    share = facts.shares.relative("compute")
    if share < STEP_TIME_VARIATION:
        return None
    operations = facts.shares.operations["compute"]
    efficiency = mean_efficiency(operations)
    guessed = by_name(operations)
    reach = f"{guessed}: {categories(facts, 'compute')}"
    if efficiency is not None:
        reach = f" at {format_percent(efficiency)} of the roofline{guessed}"
    return Finding(
        rule="compute_bound",
        kind=Bottleneck.COMPUTE,
        statement=f"{share_of_time(facts, share)} goes to compute-bound operations{reach}.",
        share=share,
        evidence=leading_operations(facts, "compute"),
    )


def hbm_bound(facts: Facts) -> Finding | None:
    """Operations that the roofline puts under the HBM roof, and whether they stream or wait."""
    share = facts.shares.relative("hbm")
    if share < STEP_TIME_VARIATION:
        return None
    operations = facts.shares.operations["hbm"]
    efficiency = mean_efficiency(operations)
    statement = f"{share_of_time(facts, share)} goes to operations bound by HBM bandwidth{by_name(operations)}"
    at = f": {categories(facts, 'hbm')}"
    if efficiency is not None:
        at = f", at {format_percent(efficiency)} of the peak on average{_streaming(efficiency)}"
    unsharded = facts.plan is not None and facts.plan.degree("model") == 1
    reason = "; every device reads whole weight matrices, as the plan has no model axis" if unsharded else ""
    return Finding(
        rule="hbm_bound",
        kind=Bottleneck.HBM,
        statement=f"{statement}{at}{reason}.",
        share=share,
        evidence=leading_operations(facts, "hbm"),
    )


def _streaming(efficiency: float) -> str:
    if efficiency > 1:
        return ": more than HBM can give, so caches serve a part of the bytes, or the peak is set too low"
    return ": they wait more than they stream" if efficiency < STREAMING else ""


def communication_bound(facts: Facts) -> Finding | None:
    """Collectives that wait for the network, by kind."""
    share = facts.shares.relative("communication")
    if share < STEP_TIME_VARIATION:
        return None
    return Finding(
        rule="communication_bound",
        kind=Bottleneck.COMMUNICATION,
        statement=f"{share_of_time(facts, share)} goes to collectives: {categories(facts, 'communication')}.",
        share=share,
        evidence=(*_communication_kpi(facts), *leading_operations(facts, "communication")),
    )


def _communication_kpi(facts: Facts) -> list[Evidence]:
    if (share := facts.profile.kpis.communication) is None:
        return []
    return [Evidence(fact="communication overhead", quantity=facts.fraction(share, "collective time / step time"))]


def _offload_less(stack: Stack | None) -> str:
    """What to do, in the words of the stack."""
    known = contracts().get(stack or "")
    less, setting = (known.offload_less, known.rematerialised_by) if known else ("offload less", "")
    cheaper = "where recomputation is cheaper than the copy, rematerialise instead"
    return f"{less}; {cheaper}{f' ({setting})' if setting else ''}"


def host_transfer_bound(facts: Facts) -> Finding | None:
    """Copies to and from host memory, against the link to the host and against what could hide them."""
    share = facts.shares.relative("host_transfer")
    if share < STEP_TIME_VARIATION:
        return None
    statement = f"{share_of_time(facts, share)} waits for copies to and from host memory"
    rate = _rate(facts)
    evidence = leading_operations(facts, "host_transfer")
    if rate is not None:
        statement += f", which move {format_rate(rate, 'B/s')}{_link_text(facts, rate)}"
        evidence = (Evidence(fact="rate of copies with the host", quantity=facts.amount(rate, "B/s")), *evidence)
    return Finding(
        rule="host_transfer_bound",
        kind=Bottleneck.HOST_TRANSFER,
        statement=f"{statement}{_hideable(facts, share)}.",
        share=share,
        evidence=evidence,
        advice=_offload_less(facts.stack),
    )


def _rate(facts: Facts) -> float | None:
    """Bytes per second of waiting: what was hidden is not seen, so the link itself may be faster, not slower."""
    copies = [op for op in facts.shares.operations["host_transfer"] if op.bytes_accessed and op.time_s]
    time = sum(op.time_s or 0.0 for op in copies)
    return sum(op.bytes_accessed or 0.0 for op in copies) / time if time else None


def _link_text(facts: Facts, rate: float) -> str:
    link = facts.chip.host_bandwidth if facts.chip else None
    if not link or rate > link:
        return ""
    return f" of the {format_rate(link, 'B/s')} that the link carries in one direction"


def _hideable(facts: Facts, share: float) -> str:
    """Whether more overlap can help: no more can hide than there is other work."""
    others = sum(facts.shares.relative(name) for name in ("compute", "hbm", "opaque"))
    if facts.shares.partial or others >= share:
        return ""
    return f"; the other operations take {format_percent(others)}, and overlap can hide no more than that"


def host_bound(facts: Facts) -> Finding | None:
    """Time in which the device waits for input, infeed or the host."""
    waited = facts.profile.kpis.input
    share = max(waited or 0.0, facts.shares.relative("host"))
    if share < STEP_TIME_VARIATION:
        return None
    source = "input share of the step" if waited else "host-bound operations"
    awaited = f"the host: {spelled(facts.profile.host)}" if facts.profile.host else "input or the host"
    return Finding(
        rule="host_bound",
        kind=Bottleneck.HOST,
        statement=f"{format_percent(share)} of the {facts.profile.extent} waits for {awaited}.",
        share=share,
        evidence=(Evidence(fact=source, quantity=facts.fraction(share, "profile")), *leading_operations(facts, "host")),
        advice=_advice(facts),
    )


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


def idle_device(facts: Facts) -> Finding | None:
    """Time in which the device does nothing."""
    idle = facts.shares.idle
    if idle is None or idle < STEP_TIME_VARIATION:
        return None
    return Finding(
        rule="idle_device",
        kind=Bottleneck.IDLE,
        statement=f"the device is idle for {format_percent(idle)} of the time.",
        share=idle,
        evidence=(Evidence(fact="idle", quantity=facts.fraction(idle, "device duty cycle")),),
        advice=f"look at what the host does meanwhile: {spelled(host)}"
        if (host := facts.profile.host)
        else "look for host work, checkpoints or stragglers between steps",
    )


def uneven_steps(facts: Facts) -> Finding | None:
    """Steps that vary more than undisturbed runs do: a straggler, or something beside the training."""
    kpis = facts.profile.kpis
    if not kpis.step_time_s or not kpis.step_time_stddev_s or (kpis.steps or 0) < 2:
        return None
    variation = kpis.step_time_stddev_s / kpis.step_time_s
    if variation <= STEP_TIME_VARIATION:
        return None
    compare = "compare hosts for a straggler, and " if (facts.profile.devices or 1) > 1 else ""
    usual = format_percent(STEP_TIME_VARIATION, 0)
    return Finding(
        rule="uneven_steps",
        kind=Bottleneck.IDLE,
        statement=f"step times vary by {format_percent(variation)}; undisturbed runs stay below {usual}.",
        evidence=(Evidence(fact="coefficient of variation", quantity=facts.fraction(variation, "step times")),),
        advice=f"{compare}look for checkpoints or evaluation inside the window",
    )


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
        advice=_how_to_open(facts),
    )


def _how_to_open(facts: Facts) -> str:
    """Kernels that the user wrote can be given a cost; those of a GPU's libraries have to be looked at from outside."""
    on_gpu = facts.chip.kind == "gpu" if facts.chip else "GPU" in (facts.profile.device_type or "")
    if not on_gpu:
        return "give the kernels a cost estimate (pallas_call(cost_estimate=…)) so that the profile can place them"
    maker = f"{facts.chip.title if facts.chip else ''} {facts.profile.device_type or ''}"
    profiler = "ROCm Compute Profiler (rocprof-compute)" if "AMD" in maker else "Nsight Compute (ncu)"
    return f"XProf knows no costs of library kernels: {profiler} tells whether they wait for compute or for memory"


RULES = (
    compute_bound,
    hbm_bound,
    communication_bound,
    host_transfer_bound,
    host_bound,
    idle_device,
    uneven_steps,
    memory_capacity,
    opaque_operations,
)
