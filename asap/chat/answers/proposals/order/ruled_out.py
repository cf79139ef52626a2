"""Which plans the limits and outcomes on record rule out: "did that kill any of them?", "so 2 is out?"."""

import re

from asap.chat.answers.phrasing import list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.units import counted
from asap.evidence.claims import EXCLUDING_CLAIMS, Claim
from asap.evidence.fact import StatedFact
from asap.plans import Plan

_GONE = (
    r"(?:kill\w*|(?:rul(?:e|es|ed|ing)|knock\w*|tak(?:e|es))(?: \w+){0,3} out|eliminat\w+|exclud\w+"
    r"|cross(?:ed|es)? (?:\w+ )?off|invalidat\w+|disqualif\w+|surviv\w+|drop\w* (?:out|any)|out of the (?:running|race)"
    r"|(?:is|are|was|were|that's|thats|it's) (?:(?:now|then|still|proposal|#?\d) ?)*(?:out|gone|dead)\b(?! of))"
)
_OF = r"(?:any|some|which|what|who|how many|them|those|these|one|ones|proposals?|plans?|options?|anything|nothing|all)"
_ASKED = re.compile(rf"\b{_OF}\b[^.?!]*\b{_GONE}|\b{_GONE}[^.?!]*\b{_OF}\b", re.I)
_SAID = re.compile(rf"\b{_GONE}", re.I)


def asks_ruled_out(question: Question) -> bool:
    """Whether it asks, or says, that plans are out by what is on record or was asked for."""
    text = question.text
    if not question.change.empty or any(amount.unit for amount in question.amounts):
        return False
    if question.refs.ranked:
        return _SAID.search(text) is not None
    return is_question(text) and _ASKED.search(text) is not None


def ruled_out(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is out, by which fact, and what is left."""
    limits = [fact for fact in conversation.evidence if fact.claim in {Claim.CONSTRAINT, *EXCLUDING_CLAIMS}]
    asked = [] if limits else list(question.context.limits)
    if not limits and not asked:
        answer.add("Nothing is ruled out: no limit and no failure is on record.")
        list_proposals(conversation, answer)
        return
    named = list(dict.fromkeys(question.refs.ranked))
    shown = {plan: _by(conversation, plan, [*limits, *asked]) for plan in named or conversation.opening}
    out = sum(by is not None for by in shown.values())
    answer.add("Yes:" if out == len(shown) else f"{out} of these {len(shown)}:" if out else "No, none of these:")
    for plan, by in shown.items():
        place = f"proposal {conversation.opening.index(plan) + 1}, " if plan in conversation.opening else ""
        answer.add(
            f"- {place}{plan}: {'ruled out by ' + str(by).removeprefix('constraint: ') if by else 'not ruled out'}"
        )
    for fact in limits:
        gone = sum(by == fact for by in conversation.revised.excluded.values())
        answer.add(f"{fact}: {counted(gone, 'plan')} of those that were ranked {'is' if gone == 1 else 'are'} out.")
    if asked:
        answer.add('That limit was asked for and is not on record: to keep to it, say "we cannot …".')
    if limits:
        list_proposals(conversation, answer)


def _by(conversation: Conversation, plan: Plan, limits: list[StatedFact]) -> StatedFact | None:
    """The fact that rules a plan out."""
    if plan in conversation.revised.excluded:
        return conversation.revised.excluded[plan]
    known = conversation.analysed.get(plan)
    memory = known.prediction.memory if known is not None else None
    held = memory.total.value if memory is not None else None
    return next((fact for fact in limits if fact.forbids(plan, held)), None)
