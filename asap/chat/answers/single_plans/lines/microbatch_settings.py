"""Microbatches of a plan, and how large they are: "how many grad acc steps in 1", "mbs?"."""

import re

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.things import things_named
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError

_ASKS = re.compile(
    r"\b(?:how many|which|what(?:'s| is| are)?(?!\s+(?:is|are|if|about|happens|an?)\b))\b"
    r"|^\W*(?:(?:and|the|so)\W+)*[\w-]+(?: batch)?(?: size)?(?: (?:of|in|for|with) #?[1-3])?\W*\?",
    re.I,
)
_OTHERWISE = re.compile(
    r"\b(?:should|best|ideal|optimal|right|would|could|help\w*|need\w*|fits?|max\w*|largest|mean\w*|effect|cost\w*"
    r"|instead|want|good)\b",
    re.I,
)
"""Words of a question that is of another number than the one that is set."""


def asks_microbatch_settings(question: Question) -> bool:
    """Whether it asks for the number or the size of the microbatches of a plan."""
    text = question.text
    named = {"microbatches", "micro_batch_size"} & set(things_named(text))
    counts = [amount for amount in question.amounts if amount.unit or amount.value > 3]
    return bool(named) and not counts and _ASKS.search(text) is not None and not _OTHERWISE.search(text)


def microbatch_settings(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of each plan that is named, else of what runs now.

    Raises:
        InsufficientEvidenceError: no plan is known.
    """
    now, batch = conversation.study.plan, conversation.study.experiment.workload.global_batch
    plans = [whole(conversation, plan) for plan in question.plans] or ([now] if now is not None else [])
    if not plans:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    answer.complete, answer.focus = True, plans[0]
    for plan in plans:
        name = "what runs now, " if plan == now else ""
        count = "not on record" if plan.microbatches is None else str(plan.microbatches)
        ranks = plan.batch_shards
        size = batch / (ranks * plan.microbatches) if batch and plan.microbatches else None
        of = f", of {size:g} sequences on each of {ranks} data ranks" if size else ""
        answer.add(f"{name}{plan}: microbatches (steps of gradient accumulation, or of the pipeline): {count}{of}.")
