"""From the compiler's answer to a verdict: reads the schedule, runs the timeline, compares with the prediction."""

from asap.compiler.calibration import load_calibration
from asap.compiler.compare import differences
from asap.compiler.groups import NamedMesh
from asap.compiler.hlo import read_module
from asap.compiler.links import Fabric
from asap.compiler.rates import rates
from asap.compiler.rematerialisation import offloaded
from asap.compiler.request import FULL_PRECISION, Outcome, Request
from asap.compiler.timeline import Simulator, Timeline
from asap.compiler.transfers import Reader
from asap.compiler.verdict import CollectiveRow, ComputeRow, Expected, Verification
from asap.core.errors import BadInputError
from asap.core.provenance import Provenance, Quantity
from asap.core.units import format_bytes, format_percent, format_rate, format_seconds
from asap.hardware import Slice
from asap.plans import AXES, Remat
from asap.plans.torus import split_axes
from asap.prediction.prediction import Prediction

_STAND_IN = (
    "the collectives are those of XLA's CPU pipeline: a GPU's joins and hides them differently, and sends bf16 in half"
    " the bytes of the f32 that CPUs send"
)
_MORE, _LESS = 0.04, 0.13
"""Shares by which the reference step took more HBM than MaxText's own, and less, at most (docs/verify.md)."""

SOURCE = "FLOPs, bytes and link load along the compiler's schedule, uncalibrated"


def judge(
    request: Request, outcome: Outcome, hardware: Slice, expected: Prediction | None, experiment: str | None = None
) -> Verification:
    """The verdict on one compilation."""
    timeline, notes = _timeline(request, outcome, hardware)
    timed = not request.on_cpu and outcome.effort != "least"
    step_time = calibrated = None
    if timeline is not None and timed:
        step_time = Quantity(value=timeline.seconds, unit="s", provenance=Provenance.COMPILED, source=SOURCE)
        if outcome.effort == "full":
            calibrated = load_calibration().calibrated(hardware.chip.name, hardware.slices, timeline.seconds)
    collectives, compute = _tables(timeline, timed)
    capacity = rates(hardware.chip).hbm_bytes
    verification = Verification(
        experiment=experiment,
        program=_program(request, experiment),
        plan=request.plan,
        hardware=_named(hardware),
        devices=hardware.devices,
        status=outcome.status,
        fits={"compiled": True, "does_not_fit": False}.get(outcome.status),
        verdict=_sentence(outcome, hardware),
        capacity_bytes=capacity,
        needed_bytes=outcome.needed_bytes,
        memory=outcome.memory,
        argument_bytes=outcome.argument_bytes,
        step_time=step_time,
        calibrated_step_time=calibrated,
        collectives=collectives,
        compute=compute,
        expected=Expected(
            step_time=expected.step_time if expected else None,
            memory=expected.memory.total if expected and expected.memory else None,
        ),
        notes=(*_effort(outcome), *_close_call(request, outcome, capacity), *notes, *_assumptions(request)),
        flags=request.flags,
        effort=outcome.effort,
        versions=outcome.versions,
        compile_s=outcome.seconds,
    )
    found = differences(verification, expected) if expected else ()
    return verification.model_copy(update={"differences": found})


def _timeline(request: Request, outcome: Outcome, hardware: Slice) -> tuple[Timeline | None, list[str]]:
    if not outcome.program:
        return None, []
    names, lengths = zip(*(outcome.axes or ((axis, request.plan.degree(axis)) for axis in AXES)), strict=True)
    axes = len(hardware.topology or ())
    fabric = Fabric(hardware, tuple(place[:axes] for place in outcome.places), outcome.slices)
    try:
        module = read_module(outcome.program)
        reader = Reader(module, NamedMesh(names, lengths), fabric)
        timeline = Simulator(module, reader, rates(hardware.chip)).run()
    except (BadInputError, LookupError, ValueError) as error:
        return None, [f"the schedule cannot be read ({type(error).__name__}: {error}): no collectives and no step time"]
    return timeline, [*sorted(timeline.notes), *_splits(request, fabric)]


def _splits(request: Request, fabric: Fabric) -> list[str]:
    """For each mesh axis that shares a torus axis, what is left of the bandwidth of a ring of its own."""
    topology = request.topology
    mesh = NamedMesh(AXES, request.plan.ici.degrees)
    notes = []
    for axis in AXES if request.slices == 1 and topology else ():
        if axis in split_axes(request.plan.ici, topology):
            reached = fabric.gather_bandwidth(mesh.groups(axis))
            best = max(fabric.hardware.axis_bandwidth(index) for index in range(len(topology)))
            cost = f"reach {format_rate(reached, 'B/s')} of the {format_rate(best, 'B/s')} of a torus axis of its own"
            cost = cost if reached < best else "lose nothing by it"
            notes.append(f"{axis} shares a torus axis with another mesh axis: its gathers {cost}")
    return notes


def _tables(timeline: Timeline | None, timed: bool) -> tuple[tuple[CollectiveRow, ...], tuple[ComputeRow, ...]]:
    if timeline is None:
        return (), ()
    collectives = [
        CollectiveRow(
            kind=kind, axes=axes, form=form, count=use.count, size_bytes=use.size,
            busy_s=use.busy if timed else None, exposed_s=use.exposed if timed else None,
            algorithms=tuple(sorted(use.algorithms)),
        )
        for (kind, axes, form), use in timeline.collectives.items()
    ]  # fmt: skip
    compute = [
        ComputeRow(category=name, count=done.count, seconds=done.seconds, unestimated=done.unestimated)
        for name, done in timeline.work.items()
        if timed
    ]
    return (
        tuple(sorted(collectives, key=lambda row: (-(row.busy_s or 0.0), -row.size_bytes))),
        tuple(sorted(compute, key=lambda row: -row.seconds)),
    )


def _program(request: Request, experiment: str | None) -> str:
    if request.maxtext is not None:
        return f"MaxText's step of {request.maxtext.get('model_name') or experiment}"
    return request.train_step or f"reference step of {(request.model and request.model.name) or experiment}"


def _named(hardware: Slice) -> str:
    slices = f"{hardware.slices} x " if hardware.slices > 1 else ""
    return f"{slices}{hardware.chip.title} {hardware.shape}"


def _sentence(outcome: Outcome, hardware: Slice) -> str:
    memory = outcome.memory
    if outcome.status == "compiled" and memory is not None:
        device = format_bytes(rates(hardware.chip).hbm_bytes)
        used = f"{format_bytes(memory.hbm_peak)} of {device} HBM" if memory.hbm_peak else f"within {device} HBM"
        beside = f", {format_bytes(memory.host)} in host memory" if memory.host else ""
        return f"compiles in {format_seconds(outcome.seconds)} and fits: {used}{beside}"
    if outcome.status == "sharded":
        return (
            f"whether it fits is not known: no compiler for {hardware.chip.title} can be had without one."
            f" XLA's CPU pipeline shards it: {format_bytes(outcome.argument_bytes or 0)} of parameters, optimizer state"
            f" and batch in {format_bytes(rates(hardware.chip).hbm_bytes)} HBM of a device, before activations"
        )
    if outcome.status == "does_not_fit":
        if outcome.needed_bytes is None or outcome.available_bytes is None:
            return f"does not fit: {outcome.message}"
        return (
            f"does not fit: needs {format_bytes(outcome.needed_bytes)} of HBM,"
            f" {format_bytes(outcome.available_bytes)} are available"
        )
    reasons = {
        "unwritten": "the training step cannot be written",
        "step_failed": "the training step raised",
        "refused": "the compiler refuses it",
        "crashed": "the compiler crashed",
        "timed_out": "the compiler did not finish",
        "out_of_host_memory": "the compiler took too much host memory",
    }
    return f"{reasons.get(outcome.status, outcome.status)}: {outcome.message}"


def _effort(outcome: Outcome) -> list[str]:
    if outcome.effort == "full":
        return []
    reason = f", as the full compilation was {outcome.instead_of}" if outcome.instead_of else ""
    time = "a longer step time" if outcome.effort == "reduced" else "no step time"
    return [
        f"compiled with {outcome.effort} effort{reason}: {time}; collectives that would run in the background show as"
        " synchronous; HBM was from 10 % below to 3 % above a full compilation's where both were tried (docs/verify.md)"
    ]


def _close_call(request: Request, outcome: Outcome, capacity: float) -> list[str]:
    """That the step of the user might fit where the reference step does not, or the other way round."""
    needed, available = outcome.needed_bytes, outcome.available_bytes
    peak = outcome.memory.hbm_peak if outcome.memory else None
    if not request.is_reference:
        return []
    if needed is not None and available is not None and needed <= available * (1 + _MORE):
        size = format_bytes(needed - available)
        edge = f"it lacks {size}; by up to {format_percent(_MORE, 0)} the reference step took more HBM than MaxText's"
    elif peak is not None and peak * (1 + _LESS) > capacity:
        size = format_bytes(capacity - peak)
        edge = f"it leaves {size}; by up to {format_percent(_LESS, 0)} MaxText's took more HBM than the reference step"
    else:
        return []
    return [f"{edge} (docs/verify.md): compile your own with --maxtext or --train-step"]


def _assumptions(request: Request) -> list[str]:
    notes = [_STAND_IN] if request.on_cpu else []
    if not request.is_reference:
        return notes
    precision, optimizer = request.workload.precision, request.workload.optimizer
    if precision not in (None, "bf16", "bfloat16", *FULL_PRECISION):
        notes.append(f"the reference step computes in bf16, not in {precision}")
    weights = request.workload.weight_precision
    if weights not in (None, "bf16", *FULL_PRECISION):
        notes.append(f"the reference step keeps its parameters in fp32, not in {weights}")
    if optimizer not in (None, "adam", "adamw"):
        notes.append(f"the reference step uses AdamW, not {optimizer}")
    if request.plan.remat is None:
        notes.append("the plan does not say what it recomputes: full is assumed")
    moved = offloaded(request.plan.remat or Remat.FULL, request.plan.offload)
    done = {"optimizer", *(["activations"] if moved else [])}
    unsupported = [part for part in request.plan.offload if part not in done]
    if unsupported:
        notes.append(f"the reference step does not offload {' and '.join(unsupported)}")
    return notes
