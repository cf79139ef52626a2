"""What the engineer expects of a step, set beside the prediction: "i'd bet on 3.6", "my guess is 5 s for 2"."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.units import format_percent, format_seconds
from asap.plans import Plan
from asap.reports import phrases

_GUESSES = re.compile(
    r"\b(?:(?:i|we)(?:'d| would| will|'ll)? (?:\w+ )?(?:bet|guess|reckon|wager|estimate|put (?:my )?money|say)"
    r"|my (?:\w+ )?(?:bet|guess|money|estimate|hunch|gut)|(?:bet|betting|guessing) (?:on|it|its|it's|you))\b",
    re.I,
)
_LARGEST = 1000.0
"""Seconds above which a bare number is no step."""


def guesses_step(question: Question) -> bool:
    """Whether it says how long it expects a step to be."""
    told = _GUESSES.search(question.text) is not None and not is_question(question.text)
    return told and question.change.empty and _guess(question) is not None


def beside_guess(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The prediction of the plan that is named, was spoken of or comes first, and where the guess lies in it."""
    guess = _guess(question)
    now = conversation.study.plan
    named = [*question.plans, *([conversation.focus] if conversation.focus else []), *conversation.order, now]
    plan = next((one for one in named if one is not None), None)
    if guess is None or plan is None:
        return
    full = whole(conversation, plan)
    answer.focus, answer.complete = full, True
    step = prediction_of(conversation, full).step_time
    if step is None:
        answer.add(f"No step of {full} can be predicted to set {format_seconds(guess)} beside.")
        return
    low, high = step.low or step.value, step.high or step.value
    side = "inside" if low <= guess <= high else "below" if guess < low else "above"
    change = format_percent(abs(guess / step.value - 1))
    answer.add(
        f"{format_seconds(guess)} is {side} what is predicted for {_name(conversation, full)}:"
        f" {phrases.interval(step)} ({change} {'less' if guess < step.value else 'more'}).",
        f'A guess is not recorded. Once it ran: "{full} measured {guess:g} s".',
    )
    answer.add_figure(f"{full}: step time", step)


def _guess(question: Question) -> float | None:
    """The seconds that are named; without a unit, a number with a fraction."""
    ranks = {mention.start for mention in question.refs.mentions if mention.way == "rank"}
    seconds = [one.value for one in question.amounts if one.unit == "s"]
    bare = [one.value for one in question.amounts if not one.unit and one.value % 1 and one.start not in ranks]
    found = seconds or [value for value in bare if value < _LARGEST]
    return found[0] if len(found) == 1 and found[0] > 0 else None


def _name(conversation: Conversation, plan: Plan) -> str:
    if plan in conversation.order:
        return f"proposal {conversation.order.index(plan) + 1}"
    return "what runs now" if plan == conversation.study.plan else str(plan)
