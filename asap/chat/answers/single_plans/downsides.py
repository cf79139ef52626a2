"""What speaks against a plan: "whats the risk with 2", "what breaks if I go data=8", "any catch?"."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent
from asap.plans.validity import violations
from asap.proposals.reasons.explain import trade_offs
from asap.proposals.selection.candidate import Candidate

_ASKS = re.compile(
    r"\b(?:what(?:'s| is| are)|whats|any|is there an?|see an?)(?: the| a| your)?(?: \w+)? "
    r"(?:risks?|downsides?|drawbacks?|catch|cons|gotchas?|trade-?offs?|disadvantages?)\b(?! of (?:the|a) )"
    r"|\bwhat (?:can|could|would|will|might|may)(?: possibly)? (?:go wrong|break|bite)\b"
    r"|\bwhat (?:breaks|goes wrong)\b"
    r"|\bwhat (?:am|are|do|would|will|'d)?\s*(?:i|we) (?:los(?:e|ing)|giv(?:e|ing) up|pay(?:ing)? for it)\b"
    r"|^\W*(?:(?:and|so|but|ok)\W+)*(?:(?:is|isn't) (?:it|that|this|proposal [1-3]|#?[1-3]) "
    r"(?:(?:too|very|really|so) )?(?:risky|dangerous|unsafe|scary)"
    r"|(?:the |your )?(?:catch|risks?|downsides?|drawbacks?|gotchas?))(?=\W*$)",
    re.I,
)
_NOTHING_MORE = re.compile(r"\W*(?:(?:then|here|please|though|there|again)\b\W*)*$", re.I)
_CERTAIN = 0.98
"""P(fits) from which running out of memory is no worry."""


def asks_downsides(question: Question) -> bool:
    """Whether it asks what speaks against one plan, and not against a technique or the run."""
    asks = _ASKS.search(question.text)
    if asks is None or not question.change.empty or question.refs.wish is not None or len(question.plans) > 1:
        return False
    return bool(question.plans) or _NOTHING_MORE.match(question.text[asks.end() :]) is not None


def downsides(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of the one spoken of, else of the first: how bad it may be, and its costs."""
    study = conversation.study
    spoken_of = [conversation.focus] if conversation.focus else []
    named = next(iter([*question.plans, *spoken_of, *conversation.order]), None)
    if named is None:
        answer.add('There is no proposal to weigh. Name a plan, as in "the risk of data=16 model=4".')
        return
    plan = whole(conversation, named)
    if plan is None or plan == study.plan or violations(plan, study.constraints):
        plan_answers.why_not(conversation, answer, named)
        return
    found = conversation.candidate(plan)
    prediction = found[1].prediction if found else prediction_of(conversation, plan)
    answer.focus = plan
    answer.add(line(conversation, found[1] if found else Candidate(prediction, 0.0)), "What speaks against it:")
    slow = prediction.relative_step_time.high if prediction.relative_step_time else None
    if slow is not None and slow > 1:
        answer.add(f"- At the slow end of the interval a step takes {format_percent(slow - 1, 0)} longer than now.")
    held = prediction.memory
    if held is None:
        answer.add("- HBM cannot be predicted without the architecture: it may run out of memory.")
    elif (odds := held.probability_fits) is not None and odds < _CERTAIN:
        answer.add(f"- It may not fit into HBM: P(fits) {format_percent(odds, 0)}.")
    answer.add(*(f"- {cost}" for cost in trade_offs(study, plan)))
    answer.add_figure(f"{plan}: step time", prediction.relative_step_time or prediction.step_time)
