"""The most or the least of one size while another is set: "longest seq at bs 1", "smallest batch without accum"."""

import re

from asap.chat.answers.other_runs.largest import largest
from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change, without_things
from asap.chat.understanding.quantities.things import Thing, To, nearest_thing, things_named
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import counted
from asap.plans import Plan

_MOST = re.compile(
    r"\b(?:longest|largest|biggest|max(?:imum|imal)?|highest|greatest|how (?:long|large|big|far)"
    r"|upper limit (?:on|of|for))\b",
    re.I,
)
_LEAST = re.compile(r"\b(?:smallest|min(?:imum|imal)?|lowest|tiniest|how (?:small|low))\b", re.I)
_OF_MEMORY: set[Thing] = {"batch", "sequence", "micro_batch_size"}
_CUT = re.compile(r"\b(?:cut|change|reduction|step|fit\w*|makes?|needed)\b", re.I)
"""Words of what is to make it fit, and of no smallest batch."""


def most_wanted(question: Question) -> Thing | None:
    """The size whose most is asked for while something else is set; ``None`` where nothing else is."""
    found = _MOST.search(question.text)
    thing = nearest_thing(question.text, found.end()) if found is not None else None
    thing = "batch" if thing in {"local_batch", "per_device_batch"} else thing
    if thing not in _OF_MEMORY or question.change.get(thing) is not None or question.change.empty:
        return None
    return thing


def most(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The most that fits with what else is set; a batch of fewer sequences than data ranks is of each of them."""
    thing, batch = most_wanted(question), question.change.get("batch")
    each = batch.value if batch is not None and not batch.factor else None

    def under(plan: Plan) -> Change:
        if each is None or each >= plan.batch_shards:
            return question.change
        of_ranks = To(value=each * plan.batch_shards * (plan.microbatches or 1))
        return without_things(question.change, {"batch"}).model_copy(
            update={"counts": (*without_things(question.change, {"batch"}).counts, ("batch", of_ranks))}
        )

    now = conversation.study.plan
    if each is not None and now is not None and each < now.batch_shards:
        answer.add(f"A batch of {each:g} is read as {counted(each, 'sequence')} of each data rank in a microbatch.")
    answer.complete = True
    largest(conversation, answer, question, thing, under)


def least_batch_wanted(question: Question) -> bool:
    """Whether it asks for the smallest batch that runs."""
    found = _LEAST.search(question.text)
    named = set(things_named(question.text)) & {"batch", "local_batch", "per_device_batch"}
    thing = nearest_thing(question.text, found.end()) if found is not None else None
    return thing in named and not _CUT.search(question.text) and question.change.get("batch") is None


def least_batch(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """One sequence of each data rank in a microbatch; without accumulation, in one microbatch.

    Raises:
        InsufficientEvidenceError: no plan is known.
    """
    study = conversation.study
    plans = list(question.plans) or [plan for plan in (study.plan, *conversation.order[:1]) if plan is not None]
    if not plans:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    answer.add("The smallest global batch, one sequence of each data rank in a microbatch, modelled:")
    answer.complete = True
    shown: set[Plan] = set()
    for plan in dict.fromkeys(whole(conversation, plan) for plan in plans):
        alone = question.change.get("microbatches") is not None and plan.degree("stage") == 1
        used = plan.model_copy(update={"microbatches": 1}) if alone else plan
        if used in shown:
            continue
        shown.add(used)
        count = used.batch_shards * (used.microbatches or 1)
        found = predict_scenario(scenario_of(study, Change(counts=(("batch", To(value=count)),)), used))
        subject = f"what runs now ({used})" if plan == study.plan else str(used)
        answer.add(f"- {subject}: {count}; {figures_of(found)}")
        answer.add_figure(f"{used}, batch {count}: step time", found.step_time)
        answer.focus = plan
