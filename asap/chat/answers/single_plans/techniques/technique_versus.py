"""Two kinds of parallelism set against each other, no degree named: "ddp vs fsdp for this?", "tp or pp?"."""

import re
from dataclasses import dataclass

from asap.chat.answers.single_plans.plans import compare, why_not
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.validity import violations

_KINDS: tuple[tuple[str, Axis], ...] = (
    (r"ddp|(?:plain |pure )?(?:dp|data[- ]parallel\w*)|zero-?[012]", "replica"),
    (r"fsdp2?|zero-?3|fully[- ]sharded", "data"),
    (r"tp|tensor(?:[- ]parallel\w*)?", "model"),
    (r"pp|pipelin\w+(?:[- ]parallel\w*)?", "stage"),
    (r"cp|context(?:[- ]parallel\w*)?|ring attention", "seq"),
    (r"ep|expert(?:[- ]parallel\w*)", "expert"),
)
_KIND = f"(?:{'|'.join(f'(?:{words})' for words, _ in _KINDS)})"
_AGAINST = (
    r"(?:vs\.?|versus|or|over|beats?|>+|against|compared (?:to|with)"
    r"|(?:always |really |usually |still |any )*(?:better|worse|faster|slower|cheaper|lighter) than)"
)
_VERSUS = re.compile(
    rf"(?<![\w=-])(?P<one>{_KIND})(?![\w=-]|\s*=?\s*\d)\s*(?:,\s*)?{_AGAINST}\s+(?:just |only |with |use |the )*"
    rf"(?P<two>{_KIND})(?![\w=-]|\s*=?\s*\d)",
    re.I,
)


@dataclass(frozen=True)
class Versus:
    """The two axes."""

    one: Axis
    two: Axis


def versus_in(question: Question) -> Versus | None:
    """The two kinds that a question sets against each other; ``None`` where it names a plan or a change."""
    found = _VERSUS.search(question.text)
    if found is None or question.refs.written or question.refs.ranked or not question.change.empty:
        return None
    one, two = _axis(found["one"]), _axis(found["two"])
    return None if one == two else Versus(one, two)


def weigh(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What runs now with all of both in the one, and in the other; raises InsufficientEvidenceError."""
    versus, now = versus_in(question), conversation.study.plan
    if versus is None:
        return
    if now is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    answer.complete = True
    degree = now.degree(versus.one) * now.degree(versus.two)
    pairs: list[tuple[Axis, Axis]] = [(versus.one, versus.two), (versus.two, versus.one)]
    plans = [_all_in(conversation, now, axis, other, degree) for axis, other in pairs]
    if degree > 1 and not any(violations(plan, conversation.study.constraints) for plan in plans):
        both = f"{_name(versus.one)} and {_name(versus.two)}"
        answer.add(f"The {degree} ranks that {both} have now, all in the one and all in the other:")
        compare(conversation, answer, plans)
        return
    best: dict[Axis, Plan | None] = {axis: _best(conversation, axis, other) for axis, other in pairs}
    found = [plan for plan in best.values() if plan is not None]
    answer.add("The best plan with the one and without the other, of each:")
    for axis, _ in pairs:
        if best[axis] is None:
            answer.add(f"No ranked plan has {_name(axis)} alone of the two.")
    if len(found) == len(best):
        compare(conversation, answer, found)
    elif found:
        why_not(conversation, answer, found[0])


def _all_in(conversation: Conversation, now: Plan, axis: Axis, other: Axis, degree: int) -> Plan:
    """The plan with all ranks of both in one of them, and micro-batches of the size that runs now."""
    return conversation.study.with_micro_batch(now.with_ici(**{other: 1}).with_ici(**{axis: degree}))


def _best(conversation: Conversation, axis: Axis, other: Axis) -> Plan | None:
    """The first of the ranked plans that has the one and not the other."""
    ranked = (candidate.plan for candidate in conversation.revised.ranked.candidates)
    return next((plan for plan in ranked if plan.degree(axis) > 1 and plan.degree(other) == 1), None)


def _axis(words: str) -> Axis:
    return next(axis for pattern, axis in _KINDS if re.fullmatch(pattern, words, re.I))


def _name(axis: Axis) -> str:
    return f"{axis} ({MEANINGS[axis]})"
