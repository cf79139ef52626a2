"""What is expected of plans for a run, by the best way that its facts allow.

From the architecture where it is known, from the profile by ratios where it is not, from both where there is both: the
measured step time then anchors the model.
"""

from collections.abc import Sequence

from asap.core.errors import InsufficientEvidenceError
from asap.diagnosis.study import Study
from asap.hardware import Slice
from asap.plans import AXES, Plan
from asap.plans.enumeration import enumerate_plans
from asap.prediction.prediction import Prediction

FITS_AS_IT_RAN = "It needs no more HBM than the plan that ran, as far as the model can compare them."
KNOWN_AXES = ("replica", "data", "seq", "model")


def candidate_plans(study: Study, axes: Sequence[str] | None = None) -> list[Plan]:
    """Every plan that is valid as far as is known, with the settings of the incumbent.

    Where the batch or the sequence is unknown, only degrees that the incumbent has shown to divide it are used.

    Args:
        study: the run.
        axes: axes that may be used. By default those that change no code of the training step, and expert and stage
            where the model or the incumbent has them.

    Raises:
        InsufficientEvidenceError: neither a plan nor the hardware says how many devices there are.
    """
    constraints, incumbent = study.constraints, study.plan
    if constraints.devices_per_slice is None:
        raise InsufficientEvidenceError(
            "the plan that runs is not known", where=study.experiment.id, hint='give it: --plan "data=8 model=4"'
        )
    if incumbent is not None:
        constraints = constraints.proven_by(incumbent)
    return enumerate_plans(constraints, axes or _usual_axes(study), like=incumbent)


def expect(study: Study, plans: Sequence[Plan]) -> list[Prediction]:
    """Predict plans for a run.

    Raises:
        InsufficientEvidenceError: neither the architecture nor a profile with its plan is known.
        PlanError: a plan is for another number of devices.
    """
    experiment, hardware = study.experiment, study.slice
    architecture, workload = experiment.model, experiment.workload
    if hardware is not None and architecture and not architecture.missing() and workload.tokens:
        return _from_architecture(study, hardware, plans)
    if study.profile is not None and study.shares is not None and study.plan is not None and study.profile.operations:
        from asap.prediction.ratios import MeasuredSplit, predict_from_profile

        split = MeasuredSplit.of(study.profile, study.shares)
        return [predict_from_profile(plan, study.plan, study.profile, split) for plan in plans]
    raise InsufficientEvidenceError(
        f"a prediction needs {_missing(study)}, or a profile together with the plan that it shows",
        where=experiment.id,
        hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
    )


def _from_architecture(study: Study, hardware: Slice, plans: Sequence[Plan]) -> list[Prediction]:
    from asap.prediction import Measured, predict

    measured = study.profile.kpis.step_time_s if study.profile else None
    baseline = Measured(study.plan, measured) if study.plan is not None and measured else None
    model, workload = study.experiment.model, study.experiment.workload
    found = predict(plans, model, workload, hardware, baseline=baseline, incumbent=study.plan)
    if baseline is None:
        return found
    (ran,) = predict([baseline.plan], model, workload, hardware, baseline=baseline)
    return [_fitting_as(ran, prediction) for prediction in found]


def _fitting_as(ran: Prediction, other: Prediction) -> Prediction:
    """A plan that needs no more HBM than one that ran fits, whatever the model says of both."""
    known, memory = ran.memory, other.memory
    if known is None or memory is None or memory.fits or memory.total.value > known.total.value:
        return other
    return other.model_copy(
        update={"memory": memory.model_copy(update={"fits": True}), "notes": (*other.notes, FITS_AS_IT_RAN)}
    )


def _usual_axes(study: Study) -> tuple[str, ...]:
    incumbent, model = study.plan or Plan(), study.experiment.model
    added = {"expert": model is not None and model.is_moe, "stage": False}
    return tuple(a for a in AXES if a in KNOWN_AXES or added[a] or incumbent.degree(a) > 1)


def _missing(study: Study) -> str:
    architecture, workload = study.experiment.model, study.experiment.workload
    parts = (
        ["the model's architecture"] if architecture is None else [f"the model's {f}" for f in architecture.missing()]
    )
    parts += ["the global batch"] if workload.global_batch is None else []
    parts += ["the sequence length"] if workload.sequence_length is None else []
    parts += ["the hardware"] if study.slice is None else []
    return " and ".join(parts)
