"""What another slice would change."""

from asap.chat.answers.phrasing import line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.changes import device_count, hardware_name
from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment, HardwareReference
from asap.experiments.hardware import refer_to_hardware
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.ranking import choose
from asap.reports import phrases
from asap.study.study import study_of


def change_hardware(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The best plans on another slice; raises InsufficientEvidenceError unless the architecture is known."""
    study = conversation.study
    if study.slice is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=conversation.id, hint="--hardware NAME")
    devices, name = device_count(text, study.slice.devices), hardware_name(text)
    reference, notes = refer_to_hardware(name or study.slice.chip.name, None, None, None if name else devices)
    answer.add(f"On {_hardware(reference)} instead of {study.slice.devices} devices:")
    answer.add(*(f"! {note}" for note in notes))
    plan = _stretched(study.plan, study.slice.devices, devices)
    experiment = study.experiment.model_copy(update={"hardware": reference, "plan": plan})
    if not _is_complete(experiment):
        raise InsufficientEvidenceError(
            "a prediction for another number of devices needs the architecture, the batch and the sequence",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME",
        )
    ranked = conversation.rank(study_of(experiment))
    if ranked.incumbent is not None:
        answer.add(f"- the current plan, scaled along its data axis: {_absolute(ranked.incumbent)}")
        answer.add_figure(f"{plan}: step time", ranked.incumbent.step_time)
    for rank, candidate in enumerate(choose(ranked.candidates, plan), 1):
        answer.add(line(conversation, candidate, rank))
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.step_time)


def _stretched(plan: Plan | None, before: int, after: int) -> Plan | None:
    """The current plan on another number of devices, if its data axis can absorb the difference."""
    degree = plan.degree("data") * after if plan is not None and plan.dcn.devices == 1 else 1
    return (
        plan.with_ici(data=degree // before) if plan is not None and degree >= before and degree % before == 0 else None
    )


def _absolute(prediction: Prediction) -> str:
    held = f", HBM {phrases.memory_phrase(prediction)}" if prediction.memory else ""
    step = f"step time {phrases.interval(prediction.step_time)}" if prediction.step_time else "step time unknown"
    return f"{prediction.plan}: {step}{held}"


def _is_complete(experiment: Experiment) -> bool:
    """Whether the calibrated model can be used."""
    return experiment.model is not None and not experiment.model.missing() and bool(experiment.workload.tokens)


def _hardware(reference: HardwareReference) -> str:
    shape = "x".join(map(str, reference.topology)) if reference.topology else ""
    return " ".join(filter(None, (reference.chip, shape, f"({reference.devices} devices)")))
