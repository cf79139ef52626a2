"""Where one proposal stands: why it is first, and whether it still is better."""

import re

from asap.chat.answers.phrasing import lead
from asap.chat.answers.single_plans.plans import what_counts
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_why, is_question
from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.proposals.selection.candidate import Candidate

_AHEAD = re.compile(
    r"\b(?:first|best|top|ahead|leads?|leading|wins?|winning|winner|number one|on top|preferred|favou?rite|recommended"
    r"|(?:ranked|rated|placed) (?:highest|first|so high))\b"
    r"|\bbetter than (?:the )?(?:others?|rest)\b",
    re.I,
)
_STILL = re.compile(
    r"\bstill\b[^.?!]*\b(?:better|worse|faster|slower|ahead|behind|best|first|top|win\w*|lead\w*|the one|favou?rite"
    r"|preferred|recommended)\b",
    re.I,
)
_NOT = re.compile(r"\bnot\b|n't\b", re.I)
_LONGEST = 9
"""Words of a question on where a proposal stands; more ask for something beside it."""


def asks_standing(conversation: Conversation, question: Question) -> bool:
    """Whether it asks why one proposal is ahead, or whether it still is: "why is 1 first?", "is 2 still better?"."""
    text, named = question.text, question.refs.ranked
    if len(named) > 1 or not question.change.empty or question.refs.written or len(text.split()) > _LONGEST:
        return False
    if asks_why(text):
        return (
            not _NOT.search(text)
            and _AHEAD.search(text) is not None
            and (bool(named) or len(text.split()) <= _LONGEST // 2)
        )
    same = list(conversation.opening) == conversation.order
    return bool(named) and same and is_question(text) and _STILL.search(text) is not None


def standing(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Its place first, then what it counts beside the next, or beside the first that it is behind."""
    current = list(conversation.proposals)
    plan = next(iter(question.refs.ranked), None) or next((one.plan for one in current), None)
    place = next((place for place, one in enumerate(current) if one.plan == plan), None)
    if place is None:
        answer.add("No plan is proposed." if plan is None else f"{plan} is no proposal any more.")
        return
    answer.complete, answer.focus = True, plan
    prefix = "" if asks_why(question.text) else "No: " if place > 0 else "Yes: "
    if place > 0:
        said = f"proposal {place + 1} is not first: it is behind proposal 1 {_gap(current[0], current[place])}."
    elif len(current) > 1:
        said = f"proposal 1 is first, ahead of proposal 2 {_gap(current[0], current[1])}."
    else:
        said = "proposal 1 is the only one."
    answer.add(f"{prefix}{said}" if prefix else f"P{said[1:]}")
    shown = [current[0], current[place]] if place > 0 else current[:2]
    answer.add(*(what_counts(conversation, one) for one in shown))
    answer.add_figure(f"{plan}: step time", current[place].prediction.relative_step_time)


def _gap(first: Candidate, other: Candidate) -> str:
    difference = first.score - other.score
    side = "below" if difference < STEP_TIME_VARIATION else "above"
    return f"{lead(difference)}, {side} the {format_percent(STEP_TIME_VARIATION, 0)} noise between steps"
