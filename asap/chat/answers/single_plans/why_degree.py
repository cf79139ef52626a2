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
    r"|wasteful|stupid|dumb|insane|lol|wtf)\b|\?\?"
    r"|\b(?:sounds?|looks?|seems?|feels?) (?:\w+ )?(?:off|wrong|fishy|low|high|small|large|big|tiny|much)\b",
    re.I,
)
_NOT = re.compile(r"\bwhy (?:not|no)\b|\bwhy (?:don't|didn't|isn't|aren't|wouldn't)\b", re.I)


def asks_why_degree(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for the reason of degrees that a proposal has and what runs now has not."""
    asked = _WHY.search(question.text) is not None or _JUDGED.search(question.text) is not None
    alone = len(question.refs.ranked) < 2 and question.change.empty and bool(_named_degrees(question))
    return asked and alone and not _NOT.search(question.text) and _having(conversation, question) is not None


def why_degree(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What speaks for and against the axes in the proposal, and the proposal without them."""
    study, plan = conversation.study, _having(conversation, question)
    if plan is None:
        return
    axes = list(_named_degrees(question))
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


def _named_degrees(question: Question) -> dict[Axis, int]:
    """The degrees of the one plan that is named; of an axis that is to be none, one: "why tp1"."""
    written, wish = question.refs.written, question.refs.wish
    if len(written) == 1:
        return {axis: written[0].degree(axis) for axis in named_axes(written[0])}
    return {wish.axis: 1} if wish is not None and wish.sense == "none" and not written else {}


def _having(conversation: Conversation, question: Question) -> Plan | None:
    """The first proposal with the degrees that are named, where what runs now has others."""
    named, now = _named_degrees(question), conversation.study.plan
    if not named or now is None or all(now.degree(axis) == degree for axis, degree in named.items()):
        return None
    order = question.refs.ranked or conversation.order
    return next((plan for plan in order if all(plan.degree(axis) == named[axis] for axis in named)), None)


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
