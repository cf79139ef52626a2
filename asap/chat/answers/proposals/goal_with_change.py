"""Whether a goal is reached once something changes: "need 60 % MFU" · "with int8?" · "on 512 chips?"."""

import math

from asap.chat.answers.phrasing import figures_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import AsapError
from asap.core.units import format_percent, significant
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.doubt import log_interval, probability_faster

_LONGEST = 7
"""Words of a change that goes on with a goal; more ask for something of their own."""
_OF_A_GOAL = {Topic.TARGET, Topic.WHAT_IF}


def changes_towards_goal(question: Question) -> bool:
    """Whether it names a change right after a goal, and nothing else."""
    goes_on = question.context.goal is not None and question.context.topic in _OF_A_GOAL
    short = len(question.text.split()) <= _LONGEST and not question.unused
    return goes_on and short and not question.change.empty and question.change.remat != "any"


def goal_with_change(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The odds that each plan reaches the goal then, the likeliest first.

    Raises:
        InsufficientEvidenceError: the engine cannot tell what the change brings.
        PlanError: no plan can run with it.
    """
    goal = question.context.goal
    if goal is None:
        return
    study = conversation.study
    plans = list(question.plans) or [*([study.plan] if study.plan else []), *conversation.order]
    rows, changes, failure = [], (), None
    for plan in dict.fromkeys(plans):
        try:
            scenario = scenario_of(study, question.change, plan)
            found = predict_scenario(scenario)
        except AsapError as error:
            failure = failure or error
            continue
        changes = changes or scenario.changes
        if (odds := _odds(found, goal)) is not None:
            rows.append((odds, _fits(found), plan, found))
    if not rows and failure is not None:
        raise failure
    best = max((row for row in rows if row[1]), key=lambda row: row[0], default=None)
    reached = best is not None and best[0] >= 0.5
    verdict = "likely reached" if reached else "not likely reached by a plan that fits"
    with_it = f"With {' and '.join(changes)}" if changes else "With that, which is so already"
    answer.add(f"{with_it}, the goal of {significant(goal)} tokens/s is {verdict}:")
    for odds, _, plan, found in sorted(rows, key=lambda row: -row[0]):
        answer.add(f"- {_named(conversation, plan)}: {format_percent(odds, 0)}; {figures_of(found)}")
        answer.add_figure(f"{plan}: step time", found.step_time)
    if question.change.precision is not None or question.change.hardware is not None:
        answer.add("MFU is of the peak there, so a goal of MFU is kept as the tokens/s that it takes now.")
    answer.focus = best[2] if best is not None else None
    answer.goal = goal
    answer.complete = True


def _odds(prediction: Prediction, goal: float) -> float | None:
    """That a plan has at least so many tokens a second."""
    rate, step = prediction.tokens_per_second, prediction.step_time
    if rate is None or step is None:
        return None
    _, half_width = log_interval(step)
    return probability_faster(math.log(rate.value / goal), half_width)


def _fits(prediction: Prediction) -> bool:
    return prediction.memory is None or prediction.memory.fits


def _named(conversation: Conversation, plan: Plan) -> str:
    if plan == conversation.study.plan:
        return f"what runs now ({plan})"
    return f"proposal {conversation.order.index(plan) + 1}, {plan}" if plan in conversation.order else str(plan)
