"""From the compiler's answer to a verification: the schedule simulated, and each difference from the prediction."""

from collections import defaultdict

from asap.compiler.calibration import load_calibration
from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.schedule.interconnect import device_rates
from asap.compiler.schedule_tables import simulate, tabulate
from asap.compiler.verdict import effort_notes, fits, margin_notes, step_notes, verdict
from asap.compiler.verification import PredictedStep, Verification
from asap.core.units import Provenance, Quantity, format_bytes, format_percent, format_seconds
from asap.hardware import Slice
from asap.prediction.prediction import Prediction

_SMALLEST = 0.01
"""Smaller differences, as shares of the step, are left out."""


def differences_from_prediction(found: Verification, expected: Prediction) -> tuple[str, ...]:
    """Sentences on step time, its parts (largest first) and memory."""
    sentences = []
    if found.step_time and expected.step_time:
        compiled, predicted = found.step_time.value, expected.step_time.value
        change = format_percent(compiled / predicted - 1, 0)
        sign = "+" if compiled >= predicted else ""
        sentences.append(
            f"step time: {format_seconds(compiled)} compiled, {format_seconds(predicted)} predicted ({sign}{change})"
        )
        if expected.parts:
            sentences += _part_differences(found, expected, _SMALLEST * compiled)
    if found.memory and found.memory.hbm_peak and expected.memory:
        compiled_size, predicted_size = format_bytes(found.memory.hbm_peak), format_bytes(expected.memory.total.value)
        sentences.append(f"HBM: {compiled_size} compiled, {predicted_size} predicted")
    if found.fits is not None and expected.memory and found.fits != expected.memory.fits:
        expectation = {"fits": "would fit", "may not fit": "may not fit", "does not fit": "would not fit"}[
            expected.memory.verdict
        ]
        sentences.append(f"our prediction was that it {expectation}; the compiler is right")
    return tuple(sentences)


def _part_differences(found: Verification, expected: Prediction, smallest: float) -> list[str]:
    compiled, predicted = _compiled_parts(found), _predicted_parts(expected)
    gaps = {name: compiled.get(name, 0.0) - predicted.get(name, 0.0) for name in {*compiled, *predicted}}
    ordered = sorted((name for name, gap in gaps.items() if abs(gap) >= smallest), key=lambda name: -abs(gaps[name]))
    return [
        f"{name}: {format_seconds(compiled.get(name, 0.0))} compiled,"
        f" {format_seconds(predicted.get(name, 0.0))} predicted{_reason(name, compiled, predicted)}"
        for name in ordered
    ]


def _compiled_parts(found: Verification) -> dict[str, float]:
    parts: dict[str, float] = defaultdict(float)
    for row in found.compute:
        parts["compute and memory traffic"] += row.seconds
    for row in found.collectives:
        parts[f"exposed collectives along {_first_axis(row.axes)}"] += row.exposed_s or 0.0
    return parts


def _first_axis(axes: str) -> str:
    """The axis to which our model attributes a transfer: parameters sharded over data+seq+expert count as data."""
    return axes.removesuffix(" (part)").partition("+")[0]


def _predicted_parts(expected: Prediction) -> dict[str, float]:
    """The parts of the prediction under the same names; those that no schedule of one device shows keep theirs."""
    parts: dict[str, float] = defaultdict(float)
    for part in expected.parts:
        if part.axis is not None:
            parts[f"exposed collectives along {part.axis}"] += part.exposed_s
        elif part.name in ("compute", "hbm", "optimizer"):
            parts["compute and memory traffic"] += part.exposed_s
        else:
            parts[part.name] += part.exposed_s
    return parts


def _reason(name: str, compiled: dict[str, float], predicted: dict[str, float]) -> str:
    if name not in predicted:
        return " (not in our model)"
    if name not in compiled:
        return (
            " (not in the schedule of one device)" if not name.startswith("exposed") else " (the compiler emits none)"
        )
    return ""


SOURCE = "FLOPs, bytes and link load along the compiler's schedule, uncalibrated"


def assess(
    request: CompileRequest,
    outcome: CompileOutcome,
    hardware: Slice,
    expected: Prediction | None,
    experiment: str | None = None,
) -> Verification:
    """The verification of one program, from the compiler's answer and the prediction for the same plan."""
    timeline, notes = simulate(request, outcome, hardware)
    timed = not request.on_cpu and outcome.effort != "least"
    step_time = calibrated = None
    if timeline is not None and timed:
        step_time = Quantity(value=timeline.seconds, unit="s", provenance=Provenance.COMPILED, source=SOURCE)
        if outcome.effort == "full":
            calibrated = load_calibration().calibrated(hardware.chip.name, hardware.slices, timeline.seconds)
    collectives, compute = tabulate(timeline, timed)
    capacity = device_rates(hardware.chip).hbm_bytes
    verification = Verification(
        experiment=experiment,
        program=_program(request, experiment),
        plan=request.plan,
        hardware=_hardware_name(hardware),
        devices=hardware.devices,
        status=outcome.status,
        fits=fits(request, outcome, capacity),
        verdict=verdict(request, outcome, hardware),
        capacity_bytes=capacity,
        needed_bytes=outcome.needed_bytes,
        memory=outcome.memory,
        argument_bytes=outcome.argument_bytes,
        step_time=step_time,
        calibrated_step_time=calibrated,
        collectives=collectives,
        compute=compute,
        expected=PredictedStep(
            step_time=expected.step_time if expected else None,
            memory=expected.memory.total if expected and expected.memory else None,
        ),
        notes=(
            *effort_notes(request, outcome),
            *margin_notes(request, outcome, capacity),
            *notes,
            *step_notes(request),
        ),
        flags=request.flags,
        effort=outcome.effort,
        versions=outcome.versions,
        compile_s=outcome.seconds,
    )
    differences = differences_from_prediction(verification, expected) if expected else ()
    return verification.model_copy(update={"differences": differences})


def _program(request: CompileRequest, experiment: str | None) -> str:
    if request.maxtext is not None:
        return f"MaxText's step of {request.maxtext.get('model_name') or experiment}"
    return request.train_step or f"reference step of {(request.model and request.model.name) or experiment}"


def _hardware_name(hardware: Slice) -> str:
    slices = f"{hardware.slices} x " if hardware.slices > 1 else ""
    return f"{slices}{hardware.chip.title} {hardware.shape}"
