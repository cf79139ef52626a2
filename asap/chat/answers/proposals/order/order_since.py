"""Whether facts changed the order of the proposals since the conversation began."""

import re

from asap.chat.answers.phrasing import list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question

_CHANGED = re.compile(
    r"^\W*(?:(?:and|so|ok|but)\W+)*(?:what(?: (?:has|have|is|did)|'s)?|any(?:thing)?|something|did (?:it|that))"
    r"(?: (?:just|really|that|it|now|then))* (?:chang\w+|mov\w+|shift\w*|differ\w*)"
    r"(?: (?:now|then|since|there|at all))*\W*$"
    r"|\b(?:does|did|do|has|have|is|will|so)\b[^.?!]*\b(?:that|this|it|anything|something|which|the (?:rank\w*"
    r"|order|list))\b"
    r"[^.?!]*\b(?:chang\w*|affect\w*|alter\w*|flip\w*|move\w*|shift\w*|differ\w*)\b[^.?!]*"
    r"|\b(?:still|the same)\b[^.?!]*\b(?:rank\w*|order|list)\b|\b(?:rank\w*|order|list)\b[^.?!]*\b(?:still"
    r"|the same|stay\w*)\b",
    re.I,
)
_STILL_FIRST = re.compile(
    r"\bstill\b[^.?!]*\b(?:win\w*|first|1st|number one|best|lead\w*|top|ahead|hold\w*|stand\w*|favou?rite)\b", re.I
)
_AGAIN = re.compile(
    r"\b(?:re-?(?:do|run|calc\w*|comput\w*|rank|evaluat\w*|predict|fit)|updat\w*|recalibrat\w*|adjust\w*|correct\w*"
    r"|(?:do|calculate|rank) (?:it|that|them|this) again)\b[^.?!]*"
    r"\b(?:that|this|it|mine|ours|my (?:number|figure)s?|them)\b",
    re.I,
)
"""Wants what was stated to be used: "redo with that"."""
_ORDER = re.compile(r"\b(?:rank\w*|order|proposals?|recommend\w*|list|your (?:advice|pick|choice|mind))\b", re.I)


_SHORT = 5
"""Words of a question that leaves out what of: "does that move anything?"."""


def asks_order_since(question: Question) -> bool:
    """Whether it asks if what was said changes the order; of a supposed change it asks something else."""
    text = question.text
    short = len(text.split()) <= _SHORT and question.topic in {Topic.UNKNOWN, Topic.PROPOSALS, Topic.FIRST}
    of_order = _CHANGED.search(text) is not None and (short or _ORDER.search(text) is not None)
    named = question.refs.written or (question.refs.ranked and re.search(r"\d", text))
    if _STILL_FIRST.search(text) and is_question(text) and question.change.empty and not question.refs.written:
        return True
    return of_order and is_question(text) and question.change.empty and not named


def wants_it_used(conversation: Conversation, question: Question) -> bool:
    """Whether it wants facts to be used that are on record, and so are used already: "redo with that"."""
    bare = question.change.empty and not question.refs.written and not question.refs.ranked
    return bare and bool(conversation.evidence) and _AGAIN.search(question.text) is not None


def used_already(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That all figures use the facts, and the proposals with them."""
    answer.complete = True
    answer.add(f"Done already; every figure uses {'; '.join(map(str, conversation.evidence))}. Now:")
    list_proposals(conversation, answer)
    answer.focus = next(iter(conversation.order), None)


def order_since(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Yes or no, by what, and the order now."""
    opening, now = list(conversation.opening), conversation.order
    still = _STILL_FIRST.search(question.text) is not None
    facts = [str(fact) for fact in conversation.evidence]
    by = f" with what is on record: {'; '.join(facts)}" if facts else ": no fact was stated"
    what = re.match(r"\W*(?:\w+\W+)?what\b", question.text, re.I) is not None
    if opening == now:
        answer.add(f"{'Yes' if still else 'Nothing' if what else 'No'}, the order is the one that we began with{by}.")
    elif opening[:1] == now[:1]:
        first = f"Yes, {now[0]} stays first" if still else f"Not the first, which stays {now[0]}"
        answer.add(f"{first}; the others changed{by}.")
    else:
        first = f"{now[0]} is first" if now else "none is left"
        answer.add(
            f"{'The order' if what else 'No, it' if still else 'Yes, it'} is another one{by}. Now {first}"
            + (f", at the beginning {opening[0]} was." if opening else ".")
        )
    list_proposals(conversation, answer)
    answer.focus = now[0] if now else None
