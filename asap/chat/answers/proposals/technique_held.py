"""Whether a proposal has a technique: "wasn't 3 the one with offload?", "does 2 use context parallelism"."""

import re
from collections.abc import Callable

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.plans import Plan, Remat

_HAS = re.compile(
    r"\b(?:(?:is|isn't|was|wasn't|are|were|weren't) (?:not )?(?:it |that )?#?(?:proposal |option |plan )?[1-3] "
    r"(?:not )?(?:the (?:one|plan|proposal))\b"
    r"|(?:do|does|did|doesn't|don't|didn't) #?(?:proposal |option |plan )?[1-3] "
    r"(?:really |even |also |still |actually )?"
    r"(?:have|use|need|do|include|involve|contain|rely|come|keep|offload|recompute)"
    r"|is there (?:any )?[\w ]{2,30} in #?(?:proposal |option |plan )?[1-3]\b)",
    re.I,
)
_HOW_MUCH = re.compile(r"\bhow (?:much|many|long|far)\b|\bwhat\b", re.I)
_TECHNIQUES: tuple[tuple[re.Pattern[str], str, Callable[[Plan], bool]], ...] = tuple(
    (re.compile(rf"\b(?:{words})\b", re.I), title, has)
    for words, title, has in (
        (r"offload\w*|host (?:memory|ram)|cpu (?:memory|ram)", "offloading to host memory",
         lambda plan: bool(plan.offload) or plan.moves_activations),
        (r"context(?: parallel\w*)?|cp|ring attention", "context parallelism", lambda plan: plan.degree("seq") > 1),
        (r"tensor(?: parallel\w*)?|tp", "tensor parallelism", lambda plan: plan.degree("model") > 1),
        (r"pipelin\w*|pp|stages?", "pipeline stages", lambda plan: plan.degree("stage") > 1),
        (r"expert(?: parallel\w*)|ep", "expert parallelism", lambda plan: plan.degree("expert") > 1),
        (r"fsdp|zero-3", "FSDP", lambda plan: plan.degree("data") > 1),
        (r"remat\w*|recomput\w*|(?:activation )?checkpointing", "rematerialisation",
         lambda plan: plan.remat not in (None, Remat.NONE)),
        (r"(?:gradient )?accumulat\w*|microbatch\w*", "more than one microbatch",
         lambda plan: (plan.microbatches or 1) > 1),
    )
)  # fmt: skip


def asks_technique_held(question: Question) -> bool:
    """Whether it asks of one proposal if it has a technique."""
    counts = _HOW_MUCH.search(question.text) is not None
    one = not counts and not question.refs.written and len(question.refs.ranked) == 1 and is_question(question.text)
    return one and _HAS.search(question.text) is not None and _technique(question.text) is not None


def technique_held(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Yes or no, the proposal, and which of the others have it."""
    found = _technique(question.text)
    if found is None:
        return
    title, has = found
    (plan,) = question.refs.ranked
    full = whole(conversation, plan)
    others = [rank for rank, one in enumerate(conversation.order, 1) if one != plan and has(whole(conversation, one))]
    rank = conversation.order.index(plan) + 1
    answer.complete, answer.focus = True, full
    answer.add(f"{'Yes' if has(full) else 'No'}: proposal {rank} {'uses' if has(full) else 'does not use'} {title}.")
    answer.add(line(conversation, conversation.proposals[rank - 1], rank))
    named = " and ".join(f"proposal {other}" for other in others)
    answer.add(f"{named or 'No other proposal'} {'do' if len(others) > 1 else 'does'}.")


def _technique(text: str) -> tuple[str, Callable[[Plan], bool]] | None:
    return next(((title, has) for words, title, has in _TECHNIQUES if words.search(text)), None)
