"""Two proposals at once: "can 1 and 3 be combined": what both change, and what only one of them can decide."""

import re
from typing import TypeVar

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.changed_alone import changes_in_words, current_plan
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans import AXES, Plan
from asap.plans.plan import SETTINGS
from asap.plans.validity import violations
from asap.proposals.selection.candidate import Candidate
from asap.study.study import Study

_COMBINES = re.compile(
    r"\b(?:combin\w+|merg\w+|mix\w*|stack\w*|both (?:of them )?(?:at once|together|at the same time)|together|"
    r"at once|at the same time|on top of)\b|(?<!\d)[1-3]\s*\+\s*[1-3](?!\d)",
    re.I,
)
_ONE, _OTHER = r"#?(?:proposal )?(?P<one>[1-3])", r"#?(?:proposal )?(?P<other>[1-3])"
_PAIR = re.compile(rf"\b{_ONE}\s*(?:and|with|\+|&|on top of|into|plus)\s*{_OTHER}\b(?![.,]?\d|\s*%)", re.I)
_TWO = 2
Value = TypeVar("Value")


def asks_combined(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for two plans at once, by their numbers or as the two that were spoken of."""
    asked = _COMBINES.search(question.text) is not None and question.change.empty
    return asked and len(_both(conversation, question)) == _TWO


def combined(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The plan with the changes of both, what of the second it leaves out, and its figures.

    Raises:
        InsufficientEvidenceError: what runs now is not known, or nothing can be predicted.
    """
    study, now = conversation.study, current_plan(conversation)
    first, second = _both(conversation, question)
    plan, left_out = combination(study, now, first, second)
    answer.complete = True
    for one in (first, second):
        answer.add(
            f"{_name(conversation, one)} changes {changes_in_words(study, prediction_of(conversation, one), now)}."
        )
    if left_out:
        answer.add(f"Both decide {' and '.join(left_out)}, so there the first that you name holds.")
    if plan in (first, second):
        answer.focus = plan
        answer.add(f"That leaves nothing of the other to add: it is {_name(conversation, plan)} as it stands.")
        return
    if broken := violations(plan, study.constraints):
        answer.add(f"Together, {plan} cannot run: {'; '.join(each.sentence for each in broken)}.")
        return
    found = conversation.candidate(plan)
    answer.focus = plan
    candidate = found[1] if found else Candidate(prediction_of(conversation, plan), 0.0)
    answer.add(f"Together: {line(conversation, candidate)}.")
    answer.add_figure(f"{plan}: step time", candidate.prediction.relative_step_time or candidate.prediction.step_time)


def combination(study: Study, now: Plan, first: Plan, second: Plan) -> tuple[Plan, list[str]]:
    """The plan that changes what either changes, and what both change so that the first decides."""
    settings = {name: _of_both(getattr(now, name), getattr(first, name), getattr(second, name)) for name in SETTINGS}
    axes = {axis: _of_both(*(int(getattr(plan.ici, axis)) for plan in (now, first, second))) for axis in AXES}
    plan = first.with_ici(**{axis: degree for axis, (degree, _) in axes.items()})
    clashes = [axis for axis, (_, clash) in axes.items() if clash]
    if clashes or plan.devices != first.devices:
        mesh = first if first.ici != now.ici else second
        plan, clashes = first.model_copy(update={"ici": mesh.ici, "dcn": mesh.dcn}), ["the mesh"] if clashes else []
    plan = plan.model_copy(update={name: value for name, (value, _) in settings.items()})
    if violations(plan, study.constraints):
        plan = study.with_micro_batch(plan)
    return plan, [*clashes, *(name.replace("_", " ") for name, (_, clash) in settings.items() if clash)]


def _of_both(now: Value, first: Value, second: Value) -> tuple[Value, bool]:
    """What becomes of one setting, and whether both change it to something else."""
    if first == now:
        return second, False
    return first, second not in (now, first)


def _both(conversation: Conversation, question: Question) -> tuple[Plan, ...]:
    order = conversation.order
    if (pair := _PAIR.search(question.text)) is not None:
        numbers = [int(pair["one"]), int(pair["other"])]
        return tuple(order[number - 1] for number in numbers if number <= len(order))
    named = tuple(dict.fromkeys(question.refs.ranked))
    return named or (question.context.plans if re.search(r"\bboth|them\b|\bthose\b", question.text, re.I) else ())


def _name(conversation: Conversation, plan: Plan) -> str:
    return f"proposal {conversation.order.index(plan) + 1}" if plan in conversation.order else str(plan)
