"""From the compiler's answer to a verification: simulates the schedule and compares it with the prediction."""

from asap.compiler.calibration import load_calibration
from asap.compiler.caveats import effort_notes, margin_notes, step_notes
from asap.compiler.comparison import differences_from_prediction
from asap.compiler.programs.outcome import CompileOutcome
from asap.compiler.programs.request import CompileRequest
from asap.compiler.schedule.device_rates import device_rates
from asap.compiler.schedule_tables import simulate, tabulate
from asap.compiler.verdict import verdict
from asap.compiler.verification import PredictedStep, Verification
from asap.core.provenance import Provenance, Quantity
from asap.hardware import Slice
from asap.prediction.prediction import Prediction

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
        fits={"compiled": True, "does_not_fit": False}.get(outcome.status),
        verdict=verdict(outcome, hardware),
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
        notes=(*effort_notes(outcome), *margin_notes(request, outcome, capacity), *notes, *step_notes(request)),
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
