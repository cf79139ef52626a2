"""What a plan saves over the steps that are left, and after how many steps a sum of chip-hours has paid off."""

import re

from asap.chat.answers.proposals.order.verdicts import worth_it
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import plan_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import significant
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.step_time import current_step_time

_LEFT = re.compile(
    r"\b(?:left|to go|remain\w*|more|still|total|in all|altogether|over|train\w*|run is|run has|another|worth"
    r"|save\w*)\b",
    re.I,
)
_SAVED = re.compile(r"\bsav(?:e|es|ed|ing|ings)\b", re.I)
_PERIOD = re.compile(
    r"\b(?:(?:per|a|each|every|in a|over a)\s+(?P<period>day|week|month|year)"
    r"|(?P<adverb>daily|weekly|monthly|yearly))\b"
    r"|/\s?(?P<short>day|week|wk|month|mo|year|yr)\b",
    re.I,
)
_HOURS_OF = {"d": 24.0, "w": 168.0, "m": 730.0, "y": 8760.0}
"""Hours of a day, a week, a month and a year, by their first letter."""
_RUN_OF = 200
"""Steps from which a number of them is a run, and no test or warm-up."""
_PAYS = re.compile(r"\b(?:worth|pay\w*|spend\w*|justif\w*|recoup\w*|break[- ]?even)\b", re.I)
_BUDGET = re.compile(
    r"\b(?P<count>an?|one|two|three|half an?|\d+(?:\.\d+)?)\s+(?P<unit>hour|day|week)s?\b(?:\s+(?:of|on|with))?"
    r"(?:\s+(?:(?P<chips>\d{1,6})|all|the|our|this)\s*(?:x\s*)?(?=[hbav]\d|gb\d|tpu|gpu|chip|device|cluster|slice|pod|mi\d)"
    r"|(?=\W*$))",
    re.I,
)
"""Time on chips: "a day of 128 h100"."""
_COUNTS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half a": 0.5, "half an": 0.5}
_HOURS = {"hour": 1.0, "day": 24.0, "week": 168.0}
_HOUR = 3600.0


def steps_named(question: Question) -> float | None:
    """The steps that a line says are left to train."""
    steps = [one.value for one in question.amounts if one.unit == "steps" and one.value >= _RUN_OF]
    return steps[0] if len(steps) == 1 and _LEFT.search(question.text) else None


def asks_savings(question: Question) -> bool:
    """Whether it asks what a plan saves: over steps that are left, for time on chips, or at a price of those before."""
    if question.refs.written or not question.change.of_nothing_but_chips:
        return False
    priced = question.dollars_named is not None and question.tokens is None
    again = question.topic is Topic.TEST_COST and question.ellipsis
    goes_on = question.context.steps is not None and (priced or again)
    if _period(question.text) is not None:
        return True
    return steps_named(question) is not None or _hours_to_spend(question) is not None or goes_on


def _period(text: str) -> tuple[str, float] | None:
    """The period over which savings are asked for, and its hours."""
    found = _PERIOD.search(text) if _SAVED.search(text) else None
    if found is None:
        return None
    word = (found["period"] or found["adverb"] or found["short"]).lower()
    names = {"d": "day", "w": "week", "m": "month", "y": "year"}
    return names[word[0]], _HOURS_OF[word[0]]


def _hours_to_spend(question: Question) -> tuple[float, int | None] | None:
    """Hours, and the chips where they are named."""
    found = _BUDGET.search(question.text) if _PAYS.search(question.text) else None
    if found is None:
        return None
    count = found["count"].lower()
    hours = (_COUNTS[count] if count in _COUNTS else float(count)) * _HOURS[found["unit"].lower()]
    return hours, int(found["chips"]) if found["chips"] else None


def savings(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of the one that was spoken of or is proposed first.

    Raises:
        InsufficientEvidenceError: nothing is proposed, or nothing says how long a step takes.
    """
    study = conversation.study
    plan = plan_to_test(conversation, question)
    if plan is None:
        raise InsufficientEvidenceError("nothing is proposed that could save anything", where=conversation.id)
    found, now = prediction_of(conversation, plan), current_step_time(study, conversation.evidence)
    relative = found.relative_step_time
    if now is None:
        (own,) = [prediction_of(conversation, study.plan)] if study.plan is not None else [None]
        now = own.step_time if own is not None else None
    if relative is None or now is None:
        reason = "how long a step takes is not known"
        raise InsufficientEvidenceError(reason, where=conversation.id, hint='say it: "the baseline takes 2.4 s"')
    chips = study.slice.chips if study.slice else plan.devices
    answer.focus, answer.steps = plan, steps_named(question) or question.context.steps
    saved = (1 - relative.value) * now.value
    each = saved * chips / _HOUR
    if (period := _period(question.text)) is not None:
        hours = period[1] * chips * (1 - relative.value)
        price = question.dollars_named or question.context.dollars
        worth = f", ${hours * price:,.0f} at ${price:g} a chip-hour" if price else ""
        answer.add(
            f"With {plan} the tokens of a {period[0]} on {chips} chips are expected to take {significant(hours)} of"
            f" {significant(period[1] * chips)} chip-hours less{worth} (modelled)."
        )
    if (spend := _hours_to_spend(question)) is not None:
        worth_it(conversation, answer, [plan])
        _pays_after(answer, str(plan), spend[0] * (spend[1] or chips), spend, each, relative.value * now.value)
    if (steps := answer.steps) is not None:
        ends = [
            (1 - end) * now.value * steps * chips / _HOUR for end in (relative.high, relative.low) if end is not None
        ]
        span = f" ({significant(ends[0])} to {significant(ends[1])} in 90 % of cases)" if len(ends) == 2 else ""
        answer.add(
            f"Over {steps:,.0f} steps {plan} is expected to save {significant(saved * steps / _HOUR)} of"
            f" {significant(now.value * steps / _HOUR)} hours: {significant(each * steps)} chip-hours on {chips}"
            f" chips{span},"
            " modelled."
        )
        if (price := question.dollars_named or question.context.dollars) is not None:
            answer.add(f"At ${price:g} a chip-hour that is ${each * steps * price:,.0f}.")
    if spend is None and 0 < 1 - relative.value < STEP_TIME_VARIATION:
        answer.add("The gain is less than undisturbed steps vary by: measure it first.")
    answer.add_figure("step time over what runs now", relative)


def _pays_after(
    answer: ReplyBuilder, plan: str, hours: float, spend: tuple[float, int | None], each: float, step: float
) -> None:
    answer.add(f"{significant(spend[0])} hours on {hours / spend[0]:,.0f} chips are {significant(hours)} chip-hours.")
    if each <= 0:
        answer.add(f"{plan} is not expected to save time: it does not earn them back.")
        return
    steps = hours / each
    answer.add(
        f"{plan} is expected to save {significant(each)} chip-hours a step (modelled), so it earns them back after"
        f" {significant(steps)} steps, {significant(steps * step / _HOUR)} hours of training."
        ' How many steps are left? Say it, as in "40k steps left".'
    )
