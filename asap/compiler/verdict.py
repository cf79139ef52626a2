"""The verdict on a compilation: one sentence, its caveats, and its memory as evidence."""

from asap.compiler.calibration import EffortMargin, effort_margin
from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.reference.segments import offloaded
from asap.compiler.schedule.interconnect import device_rates
from asap.compiler.verification import Verification
from asap.core.units import counted, format_bytes, format_percent, format_seconds, significant
from asap.evidence.fact import Claim, StatedFact
from asap.hardware import Slice
from asap.models.workload import FULL_PRECISION
from asap.plans import Remat


def fits(request: CompileRequest, outcome: CompileOutcome, capacity: float) -> bool | None:
    """Whether the program fits into the HBM of a device (bytes); ``None`` where the compiler does not tell, or least
    effort is too near the limit."""
    if outcome.status not in ("compiled", "does_not_fit"):
        return None
    held = outcome.status == "compiled"
    margin = _margin(request, outcome)
    if margin is not None and held and outcome.memory and outcome.memory.hbm_peak:
        return None if outcome.memory.hbm_peak * margin.high > capacity else True
    if margin is not None and not held and outcome.needed_bytes and outcome.available_bytes:
        return None if outcome.needed_bytes * margin.low <= outcome.available_bytes else False
    return held


def _margin(request: CompileRequest, outcome: CompileOutcome) -> EffortMargin | None:
    return effort_margin("optimizer" in request.plan.offload) if outcome.effort == "least" else None


def verdict(request: CompileRequest, outcome: CompileOutcome, hardware: Slice) -> str:
    """One sentence."""
    memory, capacity = outcome.memory, device_rates(hardware.chip).hbm_bytes
    known = fits(request, outcome, capacity)
    if outcome.status == "compiled" and memory is not None:
        device = format_bytes(capacity)
        used = f"{format_bytes(memory.hbm_peak)} of {device} HBM" if memory.hbm_peak else f"within {device} HBM"
        host = f", {format_bytes(memory.host)} in host memory" if memory.host else ""
        found = "fits" if known else "may not fit with full effort"
        return f"compiles in {format_seconds(outcome.seconds)} and {found}: {used}{host}"
    if outcome.status == "sharded":
        return (
            f"whether it fits is unknown: compiling for {hardware.chip.title} needs the chip itself."
            f" XLA's CPU pipeline shards it: {format_bytes(outcome.argument_bytes or 0)} of parameters, optimizer state"
            f" and batch on a device with {format_bytes(device_rates(hardware.chip).hbm_bytes)} HBM, before activations"
        )
    if outcome.status == "does_not_fit":
        if outcome.needed_bytes is None or outcome.available_bytes is None:
            return f"does not fit: {outcome.message}"
        found = "may not fit" if known is None else "does not fit"
        return (
            f"{found}: needs {format_bytes(outcome.needed_bytes)} of HBM,"
            f" {format_bytes(outcome.available_bytes)} is available"
        )
    reasons = {
        "not_expressible": "the training step cannot express the plan",
        "step_failed": "the training step raised",
        "refused": "the compiler rejects it",
        "crashed": "the compiler crashed",
        "timed_out": "the compiler did not finish in time",
        "out_of_host_memory": "the compiler exceeded the host memory limit",
    }
    return f"{reasons.get(outcome.status, outcome.status)}: {outcome.message}"


def compiled_evidence(found: Verification) -> list[StatedFact]:
    """What a verdict of the compiler says of memory; nothing where it gave none."""
    if found.fits is None:
        return []
    claim = Claim.FITS if found.fits else Claim.OUT_OF_MEMORY
    return [StatedFact(claim=claim, plan=found.plan, words=found.verdict, origin="compiler")]


_CPU_PIPELINE = (
    "the collectives are those of XLA's CPU pipeline: a GPU compiler combines and overlaps them differently, and sends"
    " bf16 in half the bytes of the f32 that CPUs send"
)
_REFERENCE_TAKES_MORE, _REFERENCE_TAKES_LESS = 0.04, 0.13
"""Largest shares by which the reference step took more HBM than MaxText's, and less (docs/verify-measurements.md)."""


def effort_notes(request: CompileRequest, outcome: CompileOutcome) -> list[str]:
    """What an effort below the full one leaves out."""
    if outcome.effort == "full":
        return []
    reason = f" because the full compilation was {outcome.full_effort_failure}" if outcome.full_effort_failure else ""
    time = "the step time is too long" if outcome.effort == "reduced" else "there is no step time"
    note = f"compiled with {outcome.effort} effort{reason}: {time}, and asynchronous collectives show as synchronous"
    margin = _margin(request, outcome)
    if margin is None:
        return [note]
    median, low, high = map(significant, (margin.median, margin.low, margin.high))
    return [
        f"{note}; HBM of full effort was {median} times as much in the median of {margin.plans} plans,"
        f" {low} to {high} times in eight of ten (docs/verify.md)"
    ]


def margin_notes(request: CompileRequest, outcome: CompileOutcome, capacity: float) -> list[str]:
    """A warning where the user's step may fit although the reference step does not, or the other way round."""
    needed, available = outcome.needed_bytes, outcome.available_bytes
    peak = outcome.memory.hbm_peak if outcome.memory else None
    if not request.is_reference:
        return []
    if needed is not None and available is not None and needed <= available * (1 + _REFERENCE_TAKES_MORE):
        size = format_bytes(needed - available)
        more = format_percent(_REFERENCE_TAKES_MORE, 0)
        margin = f"it is {size} too large; the reference step took up to {more} more HBM than MaxText's"
    elif peak is not None and peak * (1 + _REFERENCE_TAKES_LESS) > capacity:
        size = format_bytes(capacity - peak)
        more = format_percent(_REFERENCE_TAKES_LESS, 0)
        margin = f"it leaves {size} free; MaxText's step took up to {more} more HBM than the reference step"
    else:
        return []
    return [f"{margin} (docs/verify.md): compile your own step with --maxtext or --train-step"]


def step_notes(request: CompileRequest) -> list[str]:
    """Where the compiled step differs from the one on record."""
    notes = [_CPU_PIPELINE] if request.on_cpu else []
    if not request.is_reference:
        return notes
    if request.mapping:
        lines = counted(request.mapping.count("\n"), "line")
        notes.append(
            f"under {lines} of a mapping program beyond the plan; the prediction knows of them only what layers"
            " recompute"
        )
    if request.model is not None and request.model.mtp_layers:
        notes.append("the reference step leaves out multi-token prediction")
    precision, optimizer = request.workload.precision, request.workload.optimizer
    if precision not in (None, "bf16", "bfloat16", *FULL_PRECISION):
        notes.append(f"the reference step computes in bf16, not in {precision}")
    weights = request.workload.weight_precision
    if weights not in (None, "bf16", *FULL_PRECISION):
        notes.append(f"the reference step keeps its parameters in fp32, not in {weights}")
    if optimizer not in (None, "adam", "adamw"):
        notes.append(f"the reference step uses AdamW, not {optimizer}")
    if request.plan.remat is None:
        notes.append("the plan states no rematerialisation: full is assumed")
    moved = offloaded(request.plan.remat or Remat.FULL, request.plan.offload)
    done = {"optimizer", "parameters", *(["activations"] if moved else [])}
    unsupported = [part for part in request.plan.offload if part not in done]
    if unsupported:
        notes.append(f"the reference step does not offload {' and '.join(unsupported)}")
    return notes
