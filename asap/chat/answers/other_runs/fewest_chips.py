"""The fewest chips on which some plan fits: the slice of now halved or doubled until that changes."""

import re
from collections.abc import Callable

from asap.chat.answers.phrasing import figures_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.things import To
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.units import counted
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits

_DOUBLINGS = 4


_AS_IT_IS = re.compile(
    r"\bas (?:(?:it|we|this|that) )?(?:is|are|now)\b|\bunchanged\b|\bwithout (?:any )?(?:chang|touch)\w+"
    r"|\bthe same (?:plan|config\w*|settings)\b",
    re.I,
)
"""Words that keep the settings of what runs now."""


_HOW_MANY = re.compile(
    r"^\W*(?:(?:and|so|but|ok)\W+)*how many (?:more )?(?:chips?|[gt]pus?|devices?|nodes?|hosts?|slices?)\b", re.I
)


def asks_how_many_chips(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for a number of chips, for what is on record: "how many gpus for 2048 as is"."""
    workload = conversation.study.experiment.workload
    now = {"batch": To(value=workload.global_batch or 0), "sequence": To(value=workload.sequence_length or 0)}
    as_now = all(now.get(thing) == to for thing, to in question.change.counts)
    left = as_now and question.change.model_copy(update={"counts": ()}).empty and not question.unused
    asked = left and question.topic in {Topic.UNKNOWN, Topic.WHAT_IF}
    return asked and _HOW_MANY.search(question.text) is not None


def fewest_chips(conversation: Conversation, answer: ReplyBuilder, text: str = "") -> None:
    """At the batch of now, of any plan, or with the settings of now where the question says so.

    Raises:
        InsufficientEvidenceError: hardware, plan or HBM is not known.
    """
    if _AS_IT_IS.search(text):
        _fewest(conversation, answer, _as_it_is, ("What runs now", "is not"))
    _fewest(conversation, answer, fastest_that_fits, ("A plan", "none is"))


def _fewest(
    conversation: Conversation,
    answer: ReplyBuilder,
    fitting: Callable[[Conversation, int], Prediction | None],
    names: tuple[str, str],
) -> None:
    """The fewest chips on which what is named fits; the first such answer is what a next question goes on with."""
    (subject, less), study = names, conversation.study
    if study.slice is None or study.plan is None:
        raise InsufficientEvidenceError("the hardware or the plan is not known", where=conversation.id)
    now = study.slice.devices
    best = fitting(conversation, now)
    larger = (now * 2**power for power in range(1, _DOUBLINGS + 1))
    smaller = (now // 2**power for power in range(1, now.bit_length()))
    count, found = now, best
    for other in smaller if best else larger:
        there = fitting(conversation, other)
        if best and there is None:
            break
        count, found = other, there
        if not best and there:
            break
    if found is None:
        answer.add(f"{subject} is not predicted to fit on up to {count} chips.")
        return
    fewer = f"{less} known to fit on {counted(count // 2, 'chip')}" if count > 1 else "there is none with less"
    answer.add(
        f"{subject} fits on {counted(count, 'chip')}, and {fewer} (halved or doubled from {now}; the batch stays):",
        f"- {found.plan}: {figures_of(found)}",
    )
    answer.add_figure(f"{found.plan} on {count} chips: step time", found.step_time)
    if count != now and answer.change is None:
        answer.change, answer.change_of = Change(counts=(("chips", To(value=count)),)), (found.plan,)


def _as_it_is(conversation: Conversation, chips: int) -> Prediction | None:
    """What runs now, stretched to so many chips; ``None`` if it does not fit or cannot be."""
    try:
        found = predict_scenario(scenario_of(conversation.study, Change(counts=(("chips", To(value=chips)),))))
    except AsapError:
        return None
    return found if found.memory is not None and fits(found) else None


def fastest_that_fits(conversation: Conversation, chips: int, batch: int | None = None) -> Prediction | None:
    """The first plan of so many chips that fits, at the batch of now or at another one; ``None`` if none does or no
    slice has so many."""
    counts = [("chips", To(value=chips))] + ([("batch", To(value=batch))] if batch else [])
    try:
        study = conversation.study
        as_it_is = study.slice is not None and chips == study.slice.devices and batch is None
        there = (
            study if as_it_is else scenario_of(study, Change.model_validate({"counts": tuple(sorted(counts))})).study
        )
        ranked = conversation.rank(there)
    except AsapError:
        return None
    found = [one.prediction for one in ranked.candidates if one.prediction.memory and fits(one.prediction)]
    return next(iter(found), None)
