"""Candidate plans of a study and their predictions, by the best method that its facts allow.

From the architecture where it is known, from the profile by ratios where it is not; anchored to the measured step when
both are known, and by the replay of the run where it was recorded and the replay explains it.
"""

import math
from collections.abc import Sequence

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_seconds
from asap.hardware import Slice
from asap.plans import AXES, Plan, Remat
from asap.plans.degrees import DEVICES_UNKNOWN, keep_micro_batch_of
from asap.plans.enumeration import enumerate_plans
from asap.prediction.prediction import STATES, Prediction
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.step_interval import REACH, half_width, is_outside
from asap.stacks.launchers import contract_of
from asap.stacks.registry import by_framework
from asap.study.study import Study

KNOWN_AXES = ("replica", "data", "seq", "model")
_LIKELY_TO_FIT = 0.85
"""Share of HBM that a plan may fill and be likely to fit. Judgement: what plans that do not say recompute."""
_MICRO_BATCH = "micro_batch_size"
_SHORT = 128
"""Tokens of a sequence that takes next to nothing."""


def candidate_plans(study: Study, axes: Sequence[str] | None = None) -> list[Plan]:
    """Every plan that is valid as far as is known, with the settings of the incumbent.

    Where the batch or the sequence is unknown, only degrees that the incumbent has shown to divide it are used; where
    only ratios of a profile can predict, only plans of which all that they communicate was measured.

    Args:
        study: the run.
        axes: axes that may be used. By default those that change no code of the training step, and expert and stage
            where the model or the incumbent has them.

    Raises:
        InsufficientEvidenceError: neither a plan nor the hardware says how many devices there are, or nothing says what
            other plans communicate.
    """
    constraints, incumbent = study.constraints, study.plan
    if constraints.devices_per_slice is None:
        raise _insufficient(study)
    if incumbent is not None:
        constraints = constraints.proven_by(incumbent)
    batch = study.experiment.workload.global_batch
    if not study.keeps_micro_batch or incumbent is None or batch is None:
        return _that_can_be_predicted(study, enumerate_plans(constraints, axes or usual_axes(study), like=incumbent))
    single = incumbent.model_copy(update={"microbatches": 1})
    plans = enumerate_plans(constraints, axes or usual_axes(study), like=single)
    return list(keep_micro_batch_of(incumbent, plans, batch))


def _that_can_be_predicted(study: Study, plans: list[Plan]) -> list[Plan]:
    """Without a model, those of which the profile holds all that they communicate."""
    if study.profile is None or study.shares is None or study.plan is None or _is_modelled(study):
        return plans
    from asap.prediction.profile_ratios import MeasuredSplit, unmeasured_axes

    measured = MeasuredSplit.of(study.profile, study.shares).collectives
    kept = [plan for plan in plans if not unmeasured_axes(plan, study.plan, measured)]
    if len(plans) > len(kept) and all(plan == study.plan for plan in kept):
        raise _unmeasured(study, "another plan")
    return kept


def expect(study: Study, plans: Sequence[Plan]) -> list[Prediction]:
    """Predict plans for a run.

    Raises:
        InsufficientEvidenceError: neither the architecture nor a profile with its plan is known, or a plan uses an axis
            that was not measured and cannot be modelled.
        PlanError: a plan is for another number of devices.
    """
    if study.slice is not None and _is_modelled(study):
        predictions = _from_architecture(study, study.slice, plans)
        if study.recording is None:
            return predictions
        from asap.prediction.from_trace.predict import replay_step_times

        return replay_step_times(study, predictions)
    if study.profile is not None and study.shares is not None and study.plan is not None and study.profile.operations:
        from asap.prediction.profile_ratios import MeasuredSplit, predict_from_profile, unmeasured_axes

        split = MeasuredSplit.of(study.profile, study.shares)
        for plan in plans:
            if unmeasured := unmeasured_axes(plan, study.plan, split.collectives):
                raise _unmeasured(study, f"an axis {' or '.join(unmeasured)}")
        return [predict_from_profile(plan, study.plan, study.profile, split) for plan in plans]
    raise _insufficient(study)


def keep_settings(study: Study, plan: Plan) -> Plan:
    """A plan with the recomputation and the microbatches that it is predicted with, where the run says all that decides
    them; else as it is."""
    from asap.prediction.step_model.recomputation import candidate_microbatches, infer_remat

    model, workload, hardware = study.experiment.model, study.experiment.workload, study.slice
    if model is None or model.missing() or hardware is None or not workload.tokens or not workload.global_batch:
        return plan
    if plan.microbatches is None and plan.degree("stage") > 1:
        plan = plan.model_copy(update={"microbatches": max(workload.global_batch // plan.batch_shards, 1)})
    counts = candidate_microbatches(plan, workload)
    return infer_remat(plan, model, workload, hardware, counts, _LIKELY_TO_FIT)


def _from_architecture(study: Study, hardware: Slice, plans: Sequence[Plan]) -> list[Prediction]:
    from asap.prediction.from_architecture import Measured, predict
    from asap.prediction.memory_outcomes import apply_outcomes, fits_if_smaller, outcomes_of
    from asap.prediction.uncertainty.own_runs import usable_own_runs

    measured = study.profile.kpis.step_time_s if study.profile else None
    baseline = Measured(study.plan, measured) if study.plan is not None and measured else None
    start = baseline if anchoring_step(study) else None
    model, workload = study.experiment.model, study.experiment.workload
    found = predict(plans, model, workload, hardware, baseline=start, incumbent=study.plan, own=usable_own_runs())
    revised = apply_outcomes(study, found)
    if baseline is None:
        return revised
    if start is None:
        revised = [_not_from(baseline.step_time, each) for each in revised]
    outcome = next((one for one in outcomes_of(study) if one.plan == baseline.plan), None)
    if outcome is not None and outcome.fitted is False:
        return revised
    (ran,) = predict([baseline.plan], model, workload, hardware, baseline=baseline)
    peak = outcome.peak_bytes if outcome else None
    return [fits_if_smaller(ran, peak, before, after) for before, after in zip(found, revised, strict=True)]


def _not_from(seconds: float, found: Prediction) -> Prediction:
    from asap.prediction.build_prediction import NARROWS, OR_MEASURED

    kept = (note.replace(NARROWS, "").replace(OR_MEASURED, "") for note in found.notes)
    said = f"The measured step, {format_seconds(seconds)}, is not what the model expects: no prediction starts from it."
    return found.model_copy(update={"notes": (*kept, said)})


def anchoring_step(study: Study) -> float | None:
    """The measured step (s) that predictions from the architecture start from.

    None where only its time was measured and it cannot be what the model expects: no part of it is then known, and
    predictions that start from it would only spread what is wrong over all of them.
    """
    from asap.prediction.from_architecture import predict

    seconds = study.profile.kpis.step_time_s if study.profile else None
    if study.profile is None or study.profile.operations or study.plan is None or study.slice is None or not seconds:
        return seconds
    (modelled,) = predict(study.plan, study.experiment.model, study.experiment.workload, study.slice)
    return None if is_unexplained(seconds, modelled, study.slice.chip.name) else seconds


def is_unexplained(seconds: float, modelled: Prediction, chip: str) -> bool:
    """Whether a measured step is not as modelled: outside of its interval, and if it is slower, as far from what the
    best published runs get out of the chip as from the model."""
    expected, best = modelled.step_time, load_calibration().best_mfu(chip)
    if expected is None or not is_outside(seconds, expected):
        return False
    if seconds < expected.value or modelled.mfu is None or best is None:
        return True
    reached = modelled.mfu.value * expected.value / seconds
    return reached < best * math.exp(-REACH * half_width(expected))


def usual_axes(study: Study) -> tuple[str, ...]:
    """Axes that change no code of the training step, and expert and stage where model or incumbent have them."""
    incumbent, model = study.plan or Plan(), study.experiment.model
    known, table = contract_of(study.experiment.workload.framework), by_framework(study.experiment.workload.framework)
    staged, replicated = known.of_core or known.staged, known.of_core
    if table is not None:
        staged, replicated = table.axes.stage is not None, table.axes.layout == "replica" and table.axes.data is None
    added = {"expert": model is not None and model.is_moe, "stage": staged, "data": not replicated}
    return tuple(a for a in AXES if added.get(a, a in KNOWN_AXES) or incumbent.degree(a) > 1)


def _is_modelled(study: Study) -> bool:
    """Whether the step model can predict the run."""
    architecture = study.experiment.model
    known = architecture is not None and not architecture.missing() and not _micro_batch_is_open(study)
    return study.slice is not None and known and bool(study.experiment.workload.tokens)


def _unmeasured(study: Study, what: str) -> InsufficientEvidenceError:
    missing = _missing(study)
    said = f"{what} cannot be predicted without {', '.join(missing)}, as its collectives were not measured"
    hint = f"`asap analyze RUN {' '.join(missing.values())}`"
    return InsufficientEvidenceError(said, where=study.experiment.id, hint=hint)


def _insufficient(study: Study) -> InsufficientEvidenceError:
    missing = _missing(study)
    needed = list(missing)
    listed = ", ".join(needed[:-1]) + " and " * (len(needed) > 1) + "".join(needed[-1:])
    said = f"a prediction needs {listed}, or a profile together with the plan that it shows{_too_large(study)}"
    shown = study.profile is not None and study.profile.operations and study.plan is None
    lacks = "--plan PLAN" if shown else " ".join(missing.values())
    return InsufficientEvidenceError(said, where=study.experiment.id, hint=f"`asap analyze RUN {lacks}`")


def _too_large(study: Study) -> str:
    """That a run does not fit whatever its batch and its sequences are; nothing where they decide it."""
    from asap.prediction.from_architecture import predict

    model, plan, workload = study.experiment.model, study.plan, study.experiment.workload
    if model is None or model.missing() or plan is None or study.slice is None:
        return ""
    least = {"global_batch": plan.batch_shards, "sequence_length": _SHORT}
    small = plan.model_copy(update={"microbatches": 1, "remat": Remat.FULL})
    memory = predict(small, model, workload.model_copy(update=least), study.slice)[0].memory
    states = sum(part.size_bytes for part in memory.parts if part.name in STATES) if memory else 0.0
    if memory is None or states <= memory.capacity_bytes:
        return ""
    takes = f"{format_bytes(states)} of {format_bytes(memory.capacity_bytes)} HBM"
    return f". It does not fit, whatever they are: {', '.join(STATES)} alone take {takes}"


def _missing(study: Study) -> dict[str, str]:
    """What a prediction needs and the record does not have, and how it is said on the command line."""
    architecture, workload = study.experiment.model, study.experiment.workload
    if architecture is None or architecture.layers is None is architecture.name:
        parts = {"the model's architecture": "model=NAME"}
    else:
        lacking = architecture.missing()
        typed = " ".join(f"model.{field}=…" for field in lacking)
        parts = {f"the model's {', '.join(lacking)}": typed} if lacking else {}
    settings = study.experiment.hyperparameters
    counted = study.slice is None and any(DEVICES_UNKNOWN in note for note in study.experiment.notes)
    counted = counted and (not settings or any("batch" in key for key in settings))
    parts |= {"the global batch": "--batch N"} if workload.global_batch is None and not counted else {}
    parts |= {"the sequence length": "--sequence N"} if workload.sequence_length is None else {}
    of_core = study.plan is None and contract_of(workload.framework).of_core and bool(settings)
    micro = _micro_batch_is_open(study) or (of_core and not any("micro_batch" in key for key in settings))
    parts |= {"the micro-batch": f"{_MICRO_BATCH}=N"} if micro else {}
    machine = f"--hardware CHIP-{study.experiment.hardware.devices or 'N'}"
    return parts | ({"the hardware": machine} if study.slice is None else {})


def _micro_batch_is_open(study: Study) -> bool:
    """Whether a configuration of Megatron does not say how many sequences a device works on at once. There is no
    default for it, and HBM hangs on it."""
    experiment, plan = study.experiment, study.plan
    if plan is None or plan.microbatches is not None or not experiment.workload.global_batch:
        return False
    return contract_of(experiment.workload.framework).of_core and bool(experiment.hyperparameters)
