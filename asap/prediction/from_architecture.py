"""Predictions of plans from the architecture, absolute or relative to a measured run."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asap.core.errors import PlanError
from asap.core.units import Quantity
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.remat import Policy
from asap.prediction.build_prediction import Anchor, build_prediction
from asap.prediction.evaluation import evaluate_plans
from asap.prediction.prediction import MemoryPrediction, Prediction
from asap.prediction.step_model.encoding import require
from asap.prediction.step_model.recomputation import infer_remat
from asap.prediction.uncertainty.calibration import AllocatorOverhead, Calibration, load_calibration
from asap.prediction.uncertainty.own_runs import Likeness, Narrowing, OwnRuns


@dataclass(frozen=True)
class Measured:
    """A known run of the same model and workload: what a what-if starts from. ``step_time`` in seconds."""

    plan: Plan
    step_time: float


def predict(
    plans: Sequence[Plan] | Plan, architecture: Architecture | None, workload: Workload, hardware: Slice, *,
    calibration: Calibration | None = None, baseline: Measured | None = None, incumbent: Plan | None = None,
    own: OwnRuns | None = None,
) -> list[Prediction]:  # fmt: skip
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


Predict = Callable[[Sequence[Plan]], Sequence[Prediction]]
"""Predicts plans of one run, by whatever is known of it."""


def predict_layers(plan: Plan, policies: Mapping[Policy, int], predict: Predict) -> Prediction:
    """Step time and HBM of a plan under which some layers have policies of their own.

    Args:
        plan: everything else.
        policies: rematerialisation → number of layers that have it.
        predict: what predicts a plan; what it raises is raised.
    """
    found = predict([plan.model_copy(update={"remat": policy}) for policy in policies])
    layers = sum(policies.values())
    shares = [count / layers for count in policies.values()]
    most = found[shares.index(max(shares))]
    if len(found) == 1:
        return most
    split = " and ".join(f"{policy} in {count}" for policy, count in policies.items())
    return Prediction(
        plan=plan, method=most.method, step_time=_mean([each.step_time for each in found], shares),
        memory=_memory([each.memory for each in found], shares), region_distance=most.region_distance,
        notes=(f"Predicted layer by layer: {split} of {layers} layers.",),
    )  # fmt: skip


def _mean(values: list[Quantity | None], shares: list[float]) -> Quantity | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None

    def weighed(field: str) -> float | None:
        ends = [getattr(value, field) for value in known]
        return None if None in ends else math.fsum(share * end for share, end in zip(shares, ends, strict=True))

    return known[0].model_copy(update={field: weighed(field) for field in ("value", "low", "high")})


def memory_in_all(total: Quantity, capacity: float) -> MemoryPrediction:
    """HBM of which only the sum is known, with its interval, on a device with a capacity in bytes."""
    low, high = ((end or total.value) / total.value for end in (total.low, total.high))
    overhead = AllocatorOverhead(low=low, high=high)
    return MemoryPrediction(
        total=total, capacity_bytes=capacity, fits=total.value <= capacity,
        probability_fits=float(overhead.probability_fits(total.value, capacity)),
    )  # fmt: skip


def _memory(values: list[MemoryPrediction | None], shares: list[float]) -> MemoryPrediction | None:
    known = [value for value in values if value is not None]
    total = _mean([value.total for value in known], shares) if len(known) == len(values) else None
    return None if total is None else memory_in_all(total, known[0].capacity_bytes)
