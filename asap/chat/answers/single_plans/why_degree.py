"""Why a proposal has a degree that is named: "why cp2", "cp 4 for 8k seems silly": its reason, its cost, the rest."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import named_axes
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.plans.validity import violations
from asap.proposals.reasons.explain import reasons, trade_offs
from asap.proposals.selection.candidate import Candidate

_WHY = re.compile(r"\b(?:why|what(?:'s| is) the (?:point|reason|idea)|what(?:'s| is) .{0,20}\bfor\b)\b(?! not\b)", re.I)
_JUDGED = re.compile(
    r"\b(?:silly|overkill|weird|odd|strange|pointless|too much|excessive|makes? no sense|unnecessary"
    r"|wasteful|stupid)\b",
    re.I,
)
_NOT = re.compile(r"\bwhy (?:not|no)\b|\bwhy (?:don't|didn't|isn't|aren't|wouldn't)\b", re.I)


def asks_why_degree(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for the reason of degrees that a proposal has and what runs now has not."""
    asked = _WHY.search(question.text) is not None or _JUDGED.search(question.text) is not None
    one = len(question.refs.written) == 1 and not question.refs.ranked and question.change.empty
    return asked and one and not _NOT.search(question.text) and _having(conversation, question) is not None


def why_degree(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What speaks for and against the axes in the proposal, and the proposal without them."""
    study, plan = conversation.study, _having(conversation, question)
    if plan is None:
        return
    axes = named_axes(question.refs.written[0])
    answer.complete, answer.focus = True, plan
    answer.add(f"That is of proposal {conversation.order.index(plan) + 1}, which is judged as a whole:")
    found = conversation.candidate(plan)
    answer.add(line(conversation, found[1] if found else Candidate(prediction_of(conversation, plan), 0.0)))
    answer.add(*(f"+ {one}" for one in reasons(study, plan) if _is_of(one, axes)))
    answer.add(*(f"- {one}" for one in trade_offs(study, plan) if _is_of(one, axes)))
    other = _as_now(conversation, plan, axes)
    if other is not None:
        answer.add(
            f"With as much of it as now: {line(conversation, Candidate(prediction_of(conversation, other), 0.0))}."
        )


def _having(conversation: Conversation, question: Question) -> Plan | None:
    """The first proposal with the degrees that are named, where what runs now has others."""
    named, now = question.refs.written[0], conversation.study.plan
    axes = named_axes(named)
    if not axes or now is None or all(now.degree(axis) == named.degree(axis) for axis in axes):
        return None
    having = (plan for plan in conversation.order if all(plan.degree(axis) == named.degree(axis) for axis in axes))
    return next(having, None)


def _is_of(sentence: str, axes: list[Axis]) -> bool:
    return any(re.match(rf"{axis} \d", sentence) for axis in axes)


def _as_now(conversation: Conversation, plan: Plan, axes: list[Axis]) -> Plan | None:
    """The proposal with those axes as they run now, and the devices of that on data parallelism, if that can run."""
    study, now = conversation.study, conversation.study.plan
    if now is None or len(axes) != 1 or axes[0] in {"data", "replica"}:
        return None
    (axis,) = axes
    data: Axis = "data" if plan.ici.data > 1 or now.ici.data > 1 else "replica"
    freed, left = divmod(getattr(plan.ici, axis) * getattr(plan.ici, data), getattr(now.ici, axis))
    if left or not freed:
        return None
    other = plan.with_ici(**{axis: getattr(now.ici, axis), data: freed})
    other = other if not violations(other, study.constraints) else study.with_micro_batch(other)
    return None if violations(other, study.constraints) else other
