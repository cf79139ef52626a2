"""Predictions of plans from the architecture, absolute or relative to a measured run."""

from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.errors import PlanError
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.build_prediction import Anchor, build_prediction
from asap.prediction.evaluate_plans import evaluate_plans
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.encoding import require
from asap.prediction.step_model.recomputation import infer_remat
from asap.prediction.uncertainty.calibration import Calibration, load_calibration
from asap.prediction.uncertainty.own_runs import Likeness, OwnRuns
from asap.prediction.uncertainty.sharing import Narrowing


@dataclass(frozen=True)
class Measured:
    """A known run of the same model and workload: what a what-if starts from. ``step_time`` in seconds."""

    plan: Plan
    step_time: float


def predict(
    plans: Sequence[Plan] | Plan,
    architecture: Architecture | None,
    workload: Workload,
    hardware: Slice,
    *,
    calibration: Calibration | None = None,
    baseline: Measured | None = None,
    incumbent: Plan | None = None,
    own: OwnRuns | None = None,
) -> list[Prediction]:
    """Step time and memory of each plan, with intervals.

    Args:
        plans: one plan or many, for the devices of ``hardware``.
        architecture: the decoder.
        workload: batch, sequence and numerics.
        hardware: chips and topology.
        calibration: the bundled one by default.
        baseline: a measured run; predictions then start from it, and their intervals are those of a what-if.
        incumbent: the plan that ``relative_step_time`` refers to; the baseline's by default.
        own: the team's own runs, which correct predictions that no baseline does.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
        PlanError: a plan is for another number of devices.
    """
    known = require(architecture, workload)
    asked = [plans] if isinstance(plans, Plan) else list(plans)
    reference = baseline.plan if baseline else incumbent
    everything = [*asked, reference] if reference else asked
    for plan in everything:
        if plan.devices != hardware.devices:
            raise PlanError(f"is for {plan.devices} devices, not {hardware.devices}", where=str(plan))
    chosen = [infer_remat(plan, known, workload, hardware) for plan in everything]
    fitted, inferred = calibration or load_calibration(), [plan.remat is None for plan in everything]
    evaluation = evaluate_plans(chosen, known, workload, hardware, fitted.full, inferred=inferred)
    anchor = Anchor(len(asked), baseline.step_time if baseline else None) if reference else None
    narrowing = _narrowing(own, fitted, Likeness.of(known, workload, hardware)) if own else None
    return [build_prediction(evaluation, index, asked[index], anchor, narrowing) for index in range(len(asked))]


def _narrowing(own: OwnRuns, fitted: Calibration, wanted: Likeness) -> Narrowing | None:
    if own.calibrated != fitted.date:
        return Narrowing(runs=0)
    return fitted.full.sharing.narrowing(wanted, own.runs)
