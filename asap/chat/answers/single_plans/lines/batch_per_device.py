"""How many sequences a device works on: "batch per chip?", "whats the local batch in 2"."""

import re

from asap.chat.answers.single_plans.figures import subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import scenario_of
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import counted, significant

_PER_DEVICE = re.compile(
    r"\b(?:bs|batch(?: size)?|sequences|seqs|samples)\s*(?:/|per|a|on (?:a|each)|for each|each)\s*"
    r"(?:chip|device|gpu|tpu|core|rank)\b|\b(?:local|per[- ](?:device|chip|gpu))[- ]?batch(?: size)?\b",
    re.I,
)
_MOST = re.compile(r"\b(?:largest|biggest|max\w*|most|fits?|critical)\b", re.I)
"""Asks for another batch than that of now."""


def asks_batch_per_device(question: Question) -> bool:
    """Whether it asks for the batch of a device, and names none."""
    asks = _PER_DEVICE.search(question.text) is not None and is_question(question.text)
    return (
        asks
        and not _MOST.search(question.text)
        and question.change.empty
        and not [a for a in question.unused if a.value > 1]
    )


def batch_per_device(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plans in question, after the change that was spoken of.

    Raises:
        InsufficientEvidenceError: the batch or the plan is not known.
    """
    study, change = conversation.study, question.of_scenario
    for name, prediction in subjects(conversation, question):
        plan = prediction.plan
        run = study if change is None else scenario_of(study, change, plan).study
        batch = run.experiment.workload.global_batch
        if batch is None:
            raise InsufficientEvidenceError("the batch is not known", where=conversation.id)
        ranks, parts = plan.batch_shards, plan.microbatches or 1
        each = batch / ranks
        split = f", in {parts} microbatches of {significant(each / parts)}" if parts > 1 else ""
        over = counted(ranks, "data rank")
        answer.add(f"{name}: a global batch of {batch} over {over} is {significant(each)} a rank{split}.")
        if plan.devices > ranks:
            answer.add(
                f"- {significant(plan.devices / ranks)} devices share the sequences of a rank: batch over devices is"
                f" {significant(batch / plan.devices)}."
            )
        answer.focus, answer.complete = plan, True
