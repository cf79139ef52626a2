"""Plans that are looked for within limits: "anything without offload?", "is there a plan that keeps tp>=4?"."""

import re

from asap.chat.answers.phrasing import line, list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.follow_up import goes_on
from asap.chat.understanding.question import Question
from asap.chat.understanding.statements.clauses import constraints_of_parts, read_clause
from asap.chat.understanding.words.dislikes import dislikes
from asap.chat.understanding.words.questions import seeks_plans
from asap.evidence.fact import StatedFact

_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_SHORT = 5
"""Words of a further limit: "and no pp"."""


def limits_of(conversation: Conversation, question: Question) -> tuple[StatedFact, ...]:
    """The limits within which a question looks for plans, with those of the question that it goes on with."""
    text, before = question.text, question.context.limits
    sought = seeks_plans(text) or dislikes(text)
    further = bool(before) and (goes_on(text) or (len(text.split()) <= _SHORT and not sought))
    if not (further or sought):
        return ()
    scene = conversation.scene
    clauses = [read_clause(part, scene) for part in _SENTENCE.split(text)]
    found = [limit for clause in clauses for limit in constraints_of_parts(clause, scene, sought=True)]
    return tuple(dict.fromkeys([*(before if further else ()), *found])) if found else ()


def within_limits(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The proposals among the plans that keep within the limits; nothing is recorded.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    answer.limits, answer.complete = limits_of(conversation, question), True
    there = conversation.with_evidence(answer.limits)
    said = "; ".join(str(limit).removeprefix("constraint: ") for limit in answer.limits)
    known, left = conversation.revised.ranked.candidates, there.revised.ranked.candidates
    answer.add(f"Asked for, not recorded: {said}. Of {len(known)} ranked plans {len(left)} are left:")
    list_proposals(there, answer)
    if left and not there.proposals:
        answer.add(f"The best of them: {line(there, left[0])}")
    if left:
        answer.focus = (there.order or [left[0].plan])[0]
        answer.add('To keep to that from here on, state it as a fact: "we cannot …", "tp must be at least 4".')
