"""Answers in figures of one plan: HBM and its parts, step time, MFU, tokens a second, days and money."""

import re

import numpy as np

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.evidence.claims import Claim
from asap.chat.evidence.step_time import current_step_time
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete, missing
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_percent, format_seconds, significant
from asap.plans import Plan
from asap.prediction.evaluate_plans import evaluate_plans
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.compute import model_flops
from asap.prediction.uncertainty.calibration import load_calibration

_FLOPS = re.compile(r"\b\w?flop(?:s|/s)?\b", re.I)
DAY, HOUR = 86400, 3600


def prediction_of(conversation: Conversation, plan: Plan) -> Prediction:
    """What is expected of a plan, with what the engineer stated; raises InsufficientEvidenceError."""
    if found := conversation.candidate(plan):
        return found[1].prediction
    return expect(conversation.study, [plan])[0]


def memory(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Whether plans fit into HBM, how tightly, and what fills it."""
    for name, prediction in _subjects(conversation, question):
        held = prediction.memory
        if held is None:
            _unknown(conversation, answer, "how much HBM it needs", name)
            continue
        free = held.capacity_bytes - held.total.value
        room = f"{format_bytes(free)} free" if free >= 0 else f"{format_bytes(-free)} too much"
        answer.add(
            f"{name} {held.verdict}: {format_bytes(held.total.value)} of {format_bytes(held.capacity_bytes)} HBM on the"
            f" fullest chip ({format_percent(held.total.value / held.capacity_bytes)}; {room};"
            f" {held.total.provenance.value}{_reserved(conversation, held.capacity_bytes)})"
        )
        answer.add(*(f"- {part.name}: {format_bytes(part.size_bytes)}" for part in held.parts if part.size_bytes > 0))
        answer.add_figure(f"{prediction.plan}: HBM", held.total)
        answer.focus = prediction.plan
    profile = conversation.study.profile
    if profile is not None and profile.peak_hbm_bytes:
        answer.add(f"measured peak of what runs now: {format_bytes(profile.peak_hbm_bytes)}")
    for fact in conversation.evidence:
        if fact.claim in {Claim.HBM_SHARE, Claim.HBM_BYTES}:
            answer.add(f"stated: {fact}")


def _reserved(conversation: Conversation, usable: float) -> str:
    """What of a chip's HBM no program can have, where that is known."""
    hardware = conversation.study.slice
    if hardware is None:
        return ""
    whole = hardware.chip.hbm_bytes / hardware.chip.devices
    return f"; {format_bytes(whole)} on the data sheet, less what the runtime keeps" if usable < whole else ""


def throughput(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Step time, tokens a second, MFU; days and money for so many tokens."""
    for name, prediction in _subjects(conversation, question):
        answer.focus = prediction.plan
        rate = prediction.tokens_per_second
        if rate is None:
            _without_rate(conversation, answer, question, name, prediction)
            continue
        answer.add(f"{name}: {figures_of(prediction)}")
        chips = prediction.plan.devices
        answer.add(
            f"- {significant(rate.value, 4)} tokens/s, {significant(rate.value / chips, 4)} tokens/s/chip "
            f"on {chips} chips"
        )
        answer.add_figure(f"{prediction.plan}: tokens per second", rate)
        answer.add(*_flops(conversation, question, prediction))
        _bill(answer, question, rate.value, chips)
        _day(conversation, answer, question, chips)
    for fact in conversation.evidence:
        if fact.claim in {Claim.MFU, Claim.THROUGHPUT}:
            answer.add(f"stated by you: {fact}")
    answer.context = question.context.model_copy(update={"tokens": question.tokens})


def _flops(conversation: Conversation, question: Question, prediction: Prediction) -> list[str]:
    """FLOPs of the model in a step, as MFU counts them, where they are asked for."""
    study, step = conversation.study, prediction.step_time
    experiment = study.experiment
    if not _FLOPS.search(question.text) or study.slice is None or step is None or experiment.model is None:
        return []
    fit = load_calibration().full
    found = evaluate_plans([prediction.plan], experiment.model, experiment.workload, study.slice, fit)
    flops = float(np.asarray(model_flops(found.inputs)).flat[0])
    said = f"{significant(flops / 1e15)} PFLOP a step, without what is computed again"
    return [f"- {said}; {significant(flops / step.value / study.slice.chips / 1e12)} TFLOP/s a chip"]


def _bill(answer: ReplyBuilder, question: Question, rate: float, chips: int) -> None:
    """How long so many tokens take, and what that costs."""
    tokens, price, budget = question.tokens, question.dollars, question.chip_hours
    if budget is not None:
        hours = budget / chips
        answer.add(f"- {budget:,.0f} chip hours are {significant(hours)} hours: {rate * hours * HOUR:,.0f} tokens")
    elif question.asks_chip_hours and tokens is None:
        answer.add(f"- {24 * chips:,} chip hours a day")
    if price is not None and tokens is None:
        answer.add(f"- an hour trains {rate * HOUR:,.0f} tokens; name the tokens for the whole bill")
    if tokens is None:
        return
    seconds = tokens / rate
    hours = seconds / HOUR * chips
    answer.add(f"- {tokens:,.0f} tokens take {significant(seconds / DAY)} days, {hours:,.0f} chip hours")
    if price is not None:
        answer.add(f"- that is ${hours * price:,.0f} at ${price:g} a chip hour")


def _day(conversation: Conversation, answer: ReplyBuilder, question: Question, chips: int) -> None:
    """What a day costs, and what of it the first proposal is expected to save."""
    price = question.dollars
    if price is None or question.tokens is not None:
        return
    day = 24 * chips * price
    answer.add(f"- {chips} chips cost ${price * chips:,.0f} an hour, ${day:,.0f} a day, at ${price:g} a chip hour")
    best = next(iter(conversation.proposals), None)
    relative = best.prediction.relative_step_time if best else None
    if best is not None and relative is not None and relative.value < 1:
        saved = f"${day * (1 - relative.value):,.0f} a day less ({relative.provenance.value})"
        answer.add(f"- {best.plan} is expected to train as much for {saved}")


def _subjects(conversation: Conversation, question: Question) -> list[tuple[str, Prediction]]:
    """Plans that a question is about, each with its name; what runs now if it names none."""
    study, order = conversation.study, conversation.order
    change = question.change if not question.change.empty else question.of_scenario
    plans = list(question.plans) or list(question.context.plans if change and question.of_scenario else ())
    if not plans and question.context.plans and question.tokens and question.dollars:
        plans = list(question.context.plans)
    if not plans and study.plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    plans = plans or [study.plan] if study.plan else plans
    found = []
    for plan in plans:
        full = whole(conversation, plan)
        if change is not None and change.remat != "any":
            scenario = scenario_of(study, change, full)
            changed = f" with {' and '.join(scenario.changes)}" if scenario.changes else ""
            found.append((f"{scenario.plan}{changed}", predict_scenario(scenario)))
            continue
        rank = order.index(full) + 1 if full in order else None
        name = f"proposal {rank} ({full})" if rank else f"what runs now ({full})" if full == study.plan else str(full)
        found.append((name, prediction_of(conversation, full)))
    return found


def _without_rate(
    conversation: Conversation, answer: ReplyBuilder, question: Question, name: str, prediction: Prediction
) -> None:
    now = current_step_time(conversation.study, conversation.evidence)
    step = prediction.step_time or (now if prediction.plan == conversation.study.plan else None)
    if step is not None:
        answer.add(f"{name}: step time {format_seconds(step.value)} ({step.provenance.value})")
        answer.add_figure(f"{prediction.plan}: step time", step)
        tokens = conversation.study.experiment.workload.tokens
        if tokens:
            answer.add(f"- {significant(tokens / step.value, 4)} tokens/s")
            return
    _unknown(conversation, answer, "its MFU and tokens/s", name)
    _day(conversation, answer, question, prediction.plan.devices)


def _unknown(conversation: Conversation, answer: ReplyBuilder, what: str, name: str) -> None:
    study = conversation.study
    why = missing(study) if not is_complete(study) else "the run's record"
    answer.add(f"{name}: {what} is unknown without {why}: asap experiments add ID --config FILE --hardware NAME")
