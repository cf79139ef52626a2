"""The plans whose figures a question is about, each with its prediction."""

import re

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete, missing
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction

_NOW = re.compile(r"\b(?:now|currently|at present|today)\b", re.I)


def prediction_of(conversation: Conversation, plan: Plan) -> Prediction:
    """What is expected of a plan, with what the engineer stated; raises InsufficientEvidenceError."""
    if found := conversation.candidate(plan):
        return found[1].prediction
    return expect(conversation.study, [plan])[0]


def subjects(conversation: Conversation, question: Question) -> list[tuple[str, Prediction]]:
    """Plans that a question is about, each with its name; what runs now if it names none."""
    study, order = conversation.study, conversation.order
    change = question.change if not question.change.empty else question.of_scenario
    plans = list(question.plans) or list(question.context.plans if change and question.of_scenario else ())
    if not plans and question.context.plans and question.tokens and question.dollars:
        plans = list(question.context.plans)
    if not plans and study.plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    if study.plan is not None and (not plans or _NOW.search(question.text)):
        plans = [study.plan, *(plan for plan in plans if plan != study.plan)]
    found = []
    if question.before_and_after and study.plan is not None and not question.plans:
        earlier = question.context.change
        if earlier is not None and earlier.remat != "any":
            found, change = [_as_it_is(conversation, study.plan)], earlier
        else:
            plans = [study.plan, *order[:1]]
    for plan in plans:
        full = whole(conversation, plan)
        if change is not None and change.remat != "any":
            scenario = scenario_of(study, change, full)
            changed = f" with {' and '.join(scenario.changes)}" if scenario.changes else ""
            found.append((f"{scenario.plan}{changed}", predict_scenario(scenario)))
            continue
        found.append(_as_it_is(conversation, full))
    return found


def _as_it_is(conversation: Conversation, plan: Plan) -> tuple[str, Prediction]:
    """A plan of the run on record, by its number where it is proposed."""
    order = conversation.order
    rank = order.index(plan) + 1 if plan in order else None
    now = plan == conversation.study.plan
    name = f"proposal {rank} ({plan})" if rank else f"what runs now ({plan})" if now else str(plan)
    return name, prediction_of(conversation, plan)


def say_unknown(conversation: Conversation, answer: ReplyBuilder, what: str, name: str) -> None:
    """Say that a figure of a plan is unknown, and without what."""
    study = conversation.study
    why = missing(study) if not is_complete(study) else "the run's record"
    answer.add(f"{name}: {what} is unknown without {why}: asap experiments add ID --config FILE --hardware NAME")
