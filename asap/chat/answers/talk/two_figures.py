"""Two figures of a comparison that nobody can tell apart: "tp off is slower for us, 1.71 vs 1.58"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question

_COMPARED = re.compile(r"\b(?:slower|faster|quicker|worse|better|longer|shorter|more|less|up|down)\b", re.I)
_TWO = re.compile(
    r"(?<![\w.])(\d+\.\d+)\s*m?s?\s*(?:vs\.?|versus|against|->|→|/|to|instead of)\s*(\d+\.\d+)(?![\w.%])", re.I
)


def reports_two_figures(question: Question) -> bool:
    """Whether it tells of two measurements without saying which plan each is of."""
    told = _TWO.search(question.text) is not None and _COMPARED.search(question.text) is not None
    return told and not is_question(question.text)


def ask_which_is_which(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Asks for the plan of each, and says how to state it; nothing is recorded."""
    found = _TWO.search(question.text)
    if found is None:
        return
    answer.complete = True
    first, second = found.groups()
    plan = next((one for one in question.plans if one != conversation.study.plan), None)
    one = str(plan) if plan is not None else "data=… model=…"
    answer.add(
        f"Which plan took {first} and which {second}, each with the same batch, sequence and rematerialisation as on"
        " record? Nothing is recorded yet.",
        f'State both, as in "{one} measured {first} s" and "the baseline measured {second} s": predictions follow.',
    )
