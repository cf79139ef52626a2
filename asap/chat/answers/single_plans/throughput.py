"""Answers on the rate of training: step time, MFU, tokens a second or a day, days and money for so many tokens."""

import re
from dataclasses import replace

import numpy as np

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.figures import say_unknown, subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.durations import period_wanted
from asap.core.provenance import Quantity
from asap.core.units import format_seconds, significant
from asap.evidence.claims import Claim
from asap.evidence.plausibility import SAYS_MFU
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.prediction.evaluate_plans import evaluate_plans
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.compute import model_flops
from asap.prediction.uncertainty.calibration import load_calibration
from asap.study.study import Study

_FLOPS = re.compile(r"\b\w?flop(?:s|/s)?\b", re.I)
DAY, HOUR = 86400, 3600
PERIODS = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY}
_UNITS = {"second": 1, "minute": 60, **PERIODS}
_LEAST = re.compile(r"\b(?:cheapest|fastest|quickest|soonest|least expensive|lowest (?:cost|bill|price))\b", re.I)
_PER_PERIOD = re.compile(rf"\b(?:(?:an?|per|each|every) |/ ?)({'|'.join(PERIODS)})\b", re.I)


def throughput(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Step time, tokens a second, MFU; days and money for so many tokens."""
    if _LEAST.search(question.text) and not question.plans and question.tokens and question.change.empty:
        question = replace(question, plans=_cheapest(conversation))
        answer.add("On the same chips the shortest step takes the fewest chip hours:")
    for name, prediction in subjects(conversation, question):
        answer.focus = prediction.plan
        chips, step = prediction.plan.devices, _step_time(conversation, prediction)
        rate = _rate(conversation, prediction)
        if rate is not None and question.tokens is not None:
            answer.add(f"{name}: {_of_training(question, rate, chips)}")
        _rate_line(conversation, answer, question, name, prediction)
        if rate is not None:
            if question.tokens is None:
                answer.add(
                    f"- {significant(rate, 4)} tokens/s, {significant(rate / chips, 4)} tokens/s/chip on {chips} chips"
                )
            answer.add(*_per_period(question, rate), *_flops(conversation, question, prediction))
            _bill(answer, question, rate, chips)
        if step is not None and (steps := question.timed) is not None:
            taken = _duration(steps * step.value, period_wanted(question.text))
            answer.add(f"- {steps:,.0f} steps take {taken}, without pauses")
        if step is not None and question.dollars is not None and question.tokens is None:
            cost = significant(step.value / HOUR * chips * question.dollars)
            answer.add(f"- a step costs ${cost}: {format_seconds(step.value)} of {chips} chips")
        _day(conversation, answer, question, prediction)
    sums = [amount.text for amount in question.amounts if amount.unit.startswith("$")]
    if sums and question.dollars is None:
        answer.add(
            f"{' and '.join(sums)} is no price of a chip hour, so nothing is worked out with it. Name that price, as in"
            ' "at $2 a chip hour".'
        )
    elif not sums and question.asks_money and question.dollars is None:
        answer.add('No price is on record: say it, as in "at $2 a chip hour".')
    for fact in conversation.evidence:
        if fact.claim in {Claim.MFU, Claim.THROUGHPUT}:
            answer.add(f"stated by you: {fact}")
    answer.context = question.context.model_copy(update={"tokens": question.tokens})


def _cheapest(conversation: Conversation) -> tuple[Plan, ...]:
    """What runs now, and the proposal with the shortest step."""
    now = conversation.study.plan
    steps = [(step.value, one.plan) for one in conversation.proposals if (step := one.prediction.step_time) is not None]
    best = [plan for _, plan in sorted(steps, key=lambda pair: pair[0])[:1]]
    return (*((now,) if now is not None else ()), *best)


def _per_period(question: Question, rate: float) -> list[str]:
    """Tokens of each period that is named, at so many a second without a pause."""
    named = dict.fromkeys(name.lower() for name in _PER_PERIOD.findall(question.text))
    return [f"- {significant(rate * PERIODS[name] / 1e9)} billion tokens a {name}, without pauses" for name in named]


def model_flops_of(study: Study, prediction: Prediction) -> float | None:
    """FLOPs of the model in a step, as MFU counts them; ``None`` where architecture or hardware is not known."""
    experiment = study.experiment
    if study.slice is None or experiment.model is None:
        return None
    fit = load_calibration().full
    found = evaluate_plans([prediction.plan], experiment.model, experiment.workload, study.slice, fit)
    return float(np.asarray(model_flops(found.inputs)).flat[0])


def _flops(conversation: Conversation, question: Question, prediction: Prediction) -> list[str]:
    """FLOPs of the model in a step, where they are asked for."""
    study, step = conversation.study, prediction.step_time
    flops = model_flops_of(study, prediction) if _FLOPS.search(question.text) and step else None
    if flops is None or step is None or study.slice is None:
        return []
    said = f"{significant(flops / 1e15)} PFLOP a step, without what is computed again"
    return [f"- {said}; {significant(flops / step.value / study.slice.chips / 1e12)} TFLOP/s a chip"]


def _bill(answer: ReplyBuilder, question: Question, rate: float, chips: int) -> None:
    """What a budget buys, in chip hours or in money."""
    tokens, price, budget = question.tokens, question.dollars, question.chip_hours
    if budget is not None:
        hours = budget / chips
        answer.add(f"- {budget:,.0f} chip hours are {significant(hours)} hours: {rate * hours * HOUR:,.0f} tokens")
    elif question.asks_chip_hours and tokens is None:
        answer.add(f"- {24 * chips:,} chip hours a day")
    if question.budget is not None and price is not None:
        hours = question.budget / price
        bought = rate * hours * HOUR / chips
        answer.add(f"- ${question.budget:,.0f} pays {hours:,.0f} chip hours at ${price:g}: {bought:,.0f} tokens")
    elif price is not None and tokens is None:
        answer.add(f"- an hour trains {rate * HOUR:,.0f} tokens; name the tokens for the whole bill")


def _of_training(question: Question, rate: float, chips: int) -> str:
    """How long so many tokens take, and what that costs where a price is known."""
    tokens, price = question.tokens or 0.0, question.dollars
    seconds = tokens / rate
    hours = seconds / HOUR * chips
    taken = _duration(seconds, period_wanted(question.text) or "day")
    said = f"{tokens:,.0f} tokens take {taken}, {hours:,.0f} chip hours"
    if price is None:
        return said
    said += f": ${hours * price:,.0f} at ${price:g} a chip hour"
    budget = question.budget
    return said + (f", {significant(hours * price / budget)} times the budget of ${budget:,.0f}" if budget else "")


def _duration(seconds: float, period: str | None) -> str:
    """So long in the unit that is wanted, else in the largest of which it is at least one."""
    unit = period or next((name for name in reversed(_UNITS) if seconds >= _UNITS[name]), "second")
    return f"{significant(seconds / _UNITS[unit])} {unit}s"


def _day(conversation: Conversation, answer: ReplyBuilder, question: Question, prediction: Prediction) -> None:
    """What a day, or the period that is named, costs, and what of it the first proposal saves of what runs now."""
    price, chips = question.dollars, prediction.plan.devices
    if price is None or question.tokens is not None:
        return
    name = next((one.lower() for one in _PER_PERIOD.findall(question.text) if one.lower() != "hour"), "day")
    cost = chips * price * PERIODS[name] / HOUR
    answer.add(f"- {chips} chips cost ${price * chips:,.0f} an hour, ${cost:,.0f} a {name}, at ${price:g} a chip hour")
    best = next(iter(conversation.proposals), None) if prediction.plan == conversation.study.plan else None
    relative = best.prediction.relative_step_time if best else None
    if best is not None and relative is not None and relative.value < 1:
        saved = f"${cost * (1 - relative.value):,.0f} a {name} less ({relative.provenance.value})"
        answer.add(f"- {best.plan} is expected to train as much for {saved}")


def _rate(conversation: Conversation, prediction: Prediction) -> float | None:
    """Tokens a second, of a run without a known architecture by its step alone."""
    if prediction.tokens_per_second is not None:
        return prediction.tokens_per_second.value
    step, tokens = _step_time(conversation, prediction), conversation.study.experiment.workload.tokens
    return tokens / step.value if tokens and step is not None else None


def _rate_line(
    conversation: Conversation, answer: ReplyBuilder, question: Question, name: str, prediction: Prediction
) -> None:
    """The figures of a plan, or which of them are not known; its name stands above them where its bill does."""
    lead = "-" if question.tokens is not None and _rate(conversation, prediction) is not None else f"{name}:"
    if (rate := prediction.tokens_per_second) is not None:
        answer.add(f"{lead} {figures_of(prediction)}")
        answer.add_figure(f"{prediction.plan}: tokens per second", rate)
        return
    step, tokens = _step_time(conversation, prediction), conversation.study.experiment.workload.tokens
    if step is None:
        say_unknown(conversation, answer, "its MFU and tokens/s", name)
        return
    answer.add(f"{lead} step time {format_seconds(step.value)} ({step.provenance.value})")
    answer.add_figure(f"{prediction.plan}: step time", step)
    if tokens is None or SAYS_MFU.search(question.text):
        say_unknown(conversation, answer, "its MFU" if tokens else "its MFU and tokens/s", name)


def _step_time(conversation: Conversation, prediction: Prediction) -> Quantity | None:
    """The step of a plan; that of what runs now as it was measured or stated."""
    now = current_step_time(conversation.study, conversation.evidence)
    return prediction.step_time or (now if prediction.plan == conversation.study.plan else None)
