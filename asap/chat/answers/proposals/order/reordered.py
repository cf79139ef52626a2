"""Orders to change the order of the proposals: "rerank pls", "swap those", "put 2 on top"."""

import re

from asap.chat.answers.phrasing import list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question

_BEFORE = r"^\W*(?:(?:ok(?:ay)?|and|so|then|now|please|just|can you|could you|you should|let'?s)\W+)*"
_AFTER = (
    r"(?:\W+(?:please|then|now|again|(?:with|for|after|on) (?:that|this|it)|given (?:that|this)|accordingly"
    r"|for me|thanks|all|from scratch))*\W*$"
)
_LIST = (
    r"(?:(?:the|your|this|that) )?(?:rank(?:ing)?s?|order(?:ing)?|list|proposals?|options?|plans?|everything|them"
    r"|it all)"
)
_AGAIN = re.compile(
    rf"{_BEFORE}(?:re-?(?:rank|sort|order|evaluate|calculate|score|assess)|update|refresh|redo|revise)"
    rf"(?:\s+{_LIST})?{_AFTER}|{_BEFORE}(?:rank|sort|score|evaluate) (?:{_LIST} )?again{_AFTER}",
    re.I,
)
_SWAP = re.compile(
    rf"{_BEFORE}(?:swap|switch|flip|reverse|invert|exchange)\s+"
    rf"(?:{_LIST}|(?:those|these|the)(?: two)?|both|#?\d (?:and|with|&|for) #?\d)(?: around)?{_AFTER}",
    re.I,
)


def asks_reordering(question: Question) -> bool:
    """Whether it orders the list to be made again, or turned round."""
    return _AGAIN.match(question.text) is not None or _SWAP.match(question.text) is not None


def reordered(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The order as it is with all that is on record; what is to be swapped is asked, where it is not named."""
    order = conversation.order
    answer.focus, answer.complete = next(iter(order), None), True
    if _SWAP.match(question.text):
        _swapped(answer, named=len(question.refs.ranked) > 1)
        return
    facts = len(conversation.evidence)
    known = f"the {facts} facts" if facts > 1 else "the fact" if facts else "no new fact"
    answer.add(f"The order is up to date: with {known} on record it is" + (":" if order else " empty."))
    list_proposals(conversation, answer)


def _swapped(answer: ReplyBuilder, *, named: bool) -> None:
    reason = "I do not swap proposals on request: the order follows figures and facts alone."
    answer.add(
        f'{reason} Ask "compare 1 and 2" for what separates them, or "what would change the order?".'
        if named
        else f'Swap what? If you mean proposals, {reason} If you mean axes or settings, name them: "swap tp for cp".'
    )
