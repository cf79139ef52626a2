"""What to know before a verdict is relied on: effort, margins, and what the reference step does differently."""

from asap.compiler.programs.outcome import CompileOutcome
from asap.compiler.programs.request import CompileRequest
from asap.compiler.reference.rematerialisation import offloaded
from asap.core.units import counted, format_bytes, format_percent
from asap.models.workload import FULL_PRECISION
from asap.plans import Remat

_CPU_PIPELINE = (
    "the collectives are those of XLA's CPU pipeline: a GPU compiler combines and overlaps them differently, and sends"
    " bf16 in half the bytes of the f32 that CPUs send"
)
_REFERENCE_TAKES_MORE, _REFERENCE_TAKES_LESS = 0.04, 0.13
"""Largest shares by which the reference step took more HBM than MaxText's, and less (docs/verify-measurements.md)."""


def effort_notes(outcome: CompileOutcome) -> list[str]:
    """What an effort below the full one leaves out."""
    if outcome.effort == "full":
        return []
    reason = f" because the full compilation was {outcome.full_effort_failure}" if outcome.full_effort_failure else ""
    time = "the step time is too long" if outcome.effort == "reduced" else "there is no step time"
    return [
        f"compiled with {outcome.effort} effort{reason}: {time}, and asynchronous collectives show as synchronous; HBM"
        " was 10 % below to 3 % above that of full effort where both were compiled, with the optimizer in host memory"
        " 43 % below to 46 % above (docs/verify.md)"
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
