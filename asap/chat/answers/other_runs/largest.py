"""The largest batch or the longest sequence that fits."""

from collections.abc import Callable

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import Thing, To, things_named
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.prediction.prediction import Prediction

_SEQUENCE_STEP = 1024
_MOST = 2**12
"""Times the smallest value that are looked at."""


def largest(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now and of the first proposal.

    Raises:
        InsufficientEvidenceError: batch, sequence or plan is not known, or HBM cannot be predicted.
    """
    study = conversation.study
    thing: Thing = "sequence" if "sequence" in things_named(question.text) else "batch"
    workload = study.experiment.workload
    now = workload.sequence_length if thing == "sequence" else workload.global_batch
    plans = list(question.plans) or [plan for plan in (study.plan, *conversation.order[:1]) if plan is not None]
    if now is None or not plans:
        missing = "the plan" if now is not None else "the sequence length" if thing == "sequence" else "the batch"
        raise InsufficientEvidenceError(f"{missing} is not known", where=conversation.id)
    name = "longest sequence" if thing == "sequence" else "largest global batch"
    answer.add(f"The {name} that fits (now {now}), modelled:")
    for plan in (whole(conversation, plan) for plan in plans):
        step = _SEQUENCE_STEP if thing == "sequence" else plan.batch_shards * (plan.microbatches or 1)
        found = _largest(step, lambda value, plan=plan: _prediction(conversation, thing, value, plan))
        subject = f"what runs now ({plan})" if plan == study.plan else str(plan)
        if found is None:
            answer.add(f"- {subject}: not even {step} fits")
            continue
        value, prediction = found
        answer.add(f"- {subject}: {value}; {figures_of(prediction)}")
        answer.add_figure(f"{plan}, {thing} {value}: step time", prediction.step_time)
        answer.focus = plan
    answer.add("A larger batch is another training recipe; the same tokens then take fewer, longer steps."
               if thing == "batch" else "At the batch of now, so that a step holds more tokens.")  # fmt: skip


def _largest(step: int, predict: Callable[[int], Prediction]) -> tuple[int, Prediction] | None:
    """The largest multiple of a step that fits, with what is expected of it; HBM grows with it."""
    fitting, found = 0, None
    width = _MOST
    while width:
        prediction = predict((fitting + width) * step)
        if prediction.memory is not None and prediction.memory.verdict == "fits":
            fitting, found = fitting + width, prediction
        width //= 2
    return (fitting * step, found) if found is not None else None


def _prediction(conversation: Conversation, thing: Thing, value: int, plan: Plan) -> Prediction:
    found = predict_scenario(scenario_of(conversation.study, Change(counts=((thing, To(value=value)),)), plan))
    if found.memory is None:
        raise InsufficientEvidenceError("HBM cannot be predicted", where=conversation.id)
    return found
