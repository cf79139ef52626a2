"""The prediction for a mapping program: its plan, and what layers recompute and how tensors are split otherwise."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from asap.core.units import Quantity, format_seconds
from asap.hardware import Slice
from asap.mapping.coverage import Target
from asap.mapping.language.format import format_decision
from asap.mapping.language.program import Program
from asap.mapping.plan_program import beyond_plan, layers_by_policy, plan_of, plan_program
from asap.mapping.sharding import kept_in_all
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from asap.prediction.from_architecture import Predict, memory_in_all, predict, predict_layers
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.encoding import require, step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.step import predict_step
from asap.prediction.tensor_splits.cost import Change, Fabric, change
from asap.prediction.tensor_splits.splits_cost import SplitsCost, splits_cost
from asap.prediction.uncertainty.calibration import load_calibration

_UNPREDICTED = ("constrain", "order", "layout", "place")
"""Lines beyond the plan whose effect on the step is not modelled."""


def predict_program(
    program: Program, target: Target, architecture: Architecture | None, workload: Workload, hardware: Slice,
    plans: Predict | None = None,
) -> Prediction:  # fmt: skip
    """Step time and HBM of a training step under a checked program.

    Args:
        program: of the mapping language, with a mesh.
        target: the model as the program sees it.
        architecture: the decoder.
        workload: batch, sequence and numerics.
        hardware: chips and topology.
        plans: predicts the plan of the program; from the architecture alone by default.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
        PlanError: the mesh is missing, of other axes, or for another number of devices.
    """
    plan, plans = plan_of(program), plans or (lambda some: predict(some, architecture, workload, hardware))
    policies = layers_by_policy(program, target, plan.remat or Remat.FULL)
    found = predict_layers(plan, policies, plans)
    known, usual = require(architecture, workload), max(policies, key=lambda policy: policies[policy])
    splits, longer = _splits(program, target, plan.model_copy(update={"remat": usual}), known, workload, hardware)
    kept = kept_in_all(program, target).hbm - kept_in_all(plan_program(plan), target).hbm
    notes = (*found.notes, *_notes(program, splits, longer))
    if not splits.tensors and not kept:
        return found.model_copy(update={"notes": notes})
    memory = found.memory and memory_in_all(_more(found.memory.total, kept + splits.hbm), found.memory.capacity_bytes)
    return Prediction(
        plan=plan, method=found.method, step_time=found.step_time and _longer(found.step_time, longer), memory=memory,
        region_distance=found.region_distance, notes=notes,
    )  # fmt: skip


def _splits(
    program: Program, target: Target, plan: Plan, architecture: Architecture, workload: Workload, hardware: Slice
) -> tuple[SplitsCost, Change]:
    """What tensors that are split otherwise cost, and how much longer than the plan's a step gets by it."""
    inputs = _single_plan(step_inputs([plan], architecture, workload, hardware))
    constants = load_calibration().full.resolve_one(Groups.of(hardware, workload))
    found = splits_cost(program, target, Fabric(plan, inputs, constants))
    return found, change(predict_step(inputs, constants), found.seconds, inputs, constants)


def _single_plan(inputs: StepInputs) -> StepInputs:
    """Numbers in place of arrays of one plan."""

    def numbers(part: Any) -> Any:
        return replace(part, **{field.name: float(np.ravel(getattr(part, field.name))[0]) for field in fields(part)})

    return StepInputs(*(numbers(part) for part in (inputs.model, inputs.workload, inputs.hardware, inputs.plan)))


def _notes(program: Program, splits: SplitsCost, longer: Change) -> Iterator[str]:
    if splits.tensors:
        value, low, high = map(_signed, longer)
        yield (
            f"{', '.join(splits.tensors)} split otherwise than under the plan: {value} a step ({low} to {high}, by how"
            " much of the collectives compute hides)."
        )
    keywords = (format_decision(decision).split()[0] for decision in beyond_plan(program))
    if left_out := [keyword for keyword in dict.fromkeys(keywords) if keyword in _UNPREDICTED]:
        yield f"Not predicted is what these lines do to the step: {', '.join(left_out)}."


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{format_seconds(abs(seconds))}"


def _longer(step: Quantity, longer: Change) -> Quantity:
    """The step with what is added, nowhere below a tenth of the plan's: no split makes compute go away."""
    added = dict(zip(("value", "low", "high"), longer, strict=True))
    more = {name: max(end + more, end / 10) for name, more in added.items() if (end := getattr(step, name)) is not None}
    return step.model_copy(update=more)


def _more(held: Quantity, added: float) -> Quantity:
    """HBM with what is added; its interval keeps its share."""
    share = max((held.value + added) / held.value, 0.0)
    return held.with_ends(lambda end: end * share)
