"""The largest batch or microbatch, the longest sequence, or the fewest chips, that fit."""

from collections.abc import Callable, Sequence

from asap.chat.answers.other_runs.fewest_chips import fewest_chips
from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import Thing, To, things_named
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.plans import Plan
from asap.prediction.prediction import Prediction

_SEQUENCE_STEP = 1024
_MOST = 2**12
"""Times the smallest value that are looked at."""
_HEADS: dict[Thing, str] = {
    "batch": "The largest global batch that fits (now {}), modelled:",
    "sequence": "The longest sequence that fits (now {}), modelled:",
    "local_batch": "The largest local batch that fits (global batch now {}), modelled:",
    "micro_batch_size": "The largest microbatch on a device that fits, at the global batch of {}, modelled:",
}
_REMARKS: dict[Thing, str] = {
    "batch": "A larger batch is another training recipe; the same tokens then take fewer, longer steps.",
    "local_batch": "A larger batch is another training recipe; the same tokens then take fewer, longer steps.",
    "sequence": "At the batch of now, so that a step holds more tokens.",
    "micro_batch_size": "The batch stays, and so does what is trained.",
}


_ASKED: tuple[Thing, ...] = ("sequence", "micro_batch_size", "local_batch")
_UNCHANGED = Change()


def largest(
    conversation: Conversation,
    answer: ReplyBuilder,
    question: Question,
    thing: Thing | None = None,
    under: Callable[[Plan], Change] = lambda plan: _UNCHANGED,
) -> None:
    """Of the plan that is named, else of what runs now and of the first proposal.

    Args:
        conversation: what was analysed.
        answer: where the lines go.
        question: what is asked.
        thing: of what the most is asked; by default what the question names.
        under: what else is to be different, for each plan.

    Raises:
        InsufficientEvidenceError: batch, sequence or plan is not known, or HBM cannot be predicted.
    """
    study, named = conversation.study, things_named(question.text)
    if {"chips", "slices"} & set(named) and not {"batch", "sequence", "micro_batch_size"} & set(named):
        fewest_chips(conversation, answer, question.text)
        return
    workload = study.experiment.workload
    thing = thing or _asked(named)
    now = workload.sequence_length if thing == "sequence" else workload.global_batch
    plans = list(question.plans) or [plan for plan in (study.plan, *conversation.order[:1]) if plan is not None]
    if now is None or not plans:
        missing = "the plan" if now is not None else "the sequence length" if thing == "sequence" else "the batch"
        raise InsufficientEvidenceError(f"{missing} is not known", where=conversation.id)
    rows = []
    for plan in dict.fromkeys(whole(conversation, plan) for plan in plans):
        found = _largest_micro_batch if thing == "micro_batch_size" else _largest_count
        value, prediction = found(conversation, thing, now, plan, under(plan))
        shown = plan if prediction is None else plan.model_copy(update={"remat": prediction.plan.remat})
        subject = f"what runs now ({shown})" if plan == study.plan else str(shown)
        if prediction is None:
            rows.append(f"- {subject}: not even {value} fits")
            continue
        rows.append(f"- {subject}: {value}{_beside(thing, value, prediction)}; {figures_of(prediction)}")
        answer.add_figure(f"{plan}, {thing} {value}: step time", prediction.step_time)
        answer.focus = plan
    changed = {one for plan in plans for one, _ in under(plan).counts}
    remark = [] if changed & {"batch", "sequence"} else [_REMARKS[thing]]
    answer.add(_HEADS[thing].format(now), *rows, *remark)


def _asked(named: Sequence[Thing]) -> Thing:
    """The size that is named; the batch where none is."""
    for thing in _ASKED:
        if thing in named:
            return thing
    return "batch"


def _beside(thing: Thing, value: int, prediction: Prediction) -> str:
    if thing == "batch":
        devices = prediction.plan.devices
        return f" ({value / devices:g} for each of {devices} devices)"
    if thing == "local_batch":
        return f" a data rank (a global batch of {value * prediction.plan.batch_shards})"
    if thing == "micro_batch_size":
        return f" sequences ({prediction.plan.microbatches} microbatches a step)"
    return ""


def _largest_micro_batch(
    conversation: Conversation, thing: Thing, batch: int, plan: Plan, under: Change
) -> tuple[int, Prediction | None]:
    """The largest microbatch that divides the sequences of a device and fits, else the smallest without prediction."""
    each = max(batch // plan.batch_shards, 1)
    for size in (size for size in range(each, 0, -1) if each % size == 0):
        try:
            prediction = _prediction(conversation, thing, size, plan, under)
        except PlanError:
            continue
        if prediction.memory is not None and prediction.memory.verdict == "fits":
            return size, prediction
    return 1, None


def _largest_count(
    conversation: Conversation, thing: Thing, now: int, plan: Plan, under: Change
) -> tuple[int, Prediction | None]:
    """The largest multiple of a step that fits, else that step without prediction; HBM grows with it."""
    step = (
        _SEQUENCE_STEP
        if thing == "sequence"
        else 1
        if thing == "local_batch"
        else plan.batch_shards * (plan.microbatches or 1)
    )
    fitting, found = 0, None
    width = _MOST
    while width:
        prediction = _prediction(conversation, thing, (fitting + width) * step, plan, under)
        if prediction.memory is not None and prediction.memory.verdict == "fits":
            fitting, found = fitting + width, prediction
        width //= 2
    return (fitting or 1) * step, found


def _prediction(conversation: Conversation, thing: Thing, value: int, plan: Plan, under: Change) -> Prediction:
    change = under.model_copy(update={"counts": (*under.counts, (thing, To(value=value)))})
    found = predict_scenario(scenario_of(conversation.study, change, plan))
    if found.memory is None:
        raise InsufficientEvidenceError("HBM cannot be predicted", where=conversation.id)
    return found
