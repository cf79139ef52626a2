"""One thing over several values, in a table: step time, tokens a second, HBM, and whether it fits."""

from typing import get_args

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import Scenario, predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.sweeps import Sweep
from asap.chat.understanding.quantities.things import Thing, To
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.text import plain
from asap.core.units import format_bytes, format_seconds, significant
from asap.plans import Plan
from asap.plans.axes import meaning_of
from asap.plans.stretch import with_degree
from asap.prediction.prediction import Prediction


def sweep(conversation: Conversation, answer: ReplyBuilder, asked: Sweep, plan: Plan | None = None) -> None:
    """What each value is predicted to bring; what cannot run says why.

    Args:
        conversation: what was analysed and stated.
        answer: where the lines go.
        asked: what is varied.
        plan: in which plan; by default in what runs now.

    Raises:
        InsufficientEvidenceError: no plan is known, or no value can be predicted.
    """
    base = whole(conversation, plan) if plan is not None else conversation.study.plan
    if base is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    name = meaning_of(asked.of).replace("_", " ")
    answer.add(f"{base} with {name} varied, modelled:", f"{name} | step time | tokens/s | HBM | MFU")
    failed: list[AsapError] = []
    for value in asked.values:
        try:
            found = predict_scenario(_scenario(conversation, asked, value, base))
        except AsapError as error:
            failed.append(error)
            answer.add(f"{value} | {plain(error.message)}")
            continue
        answer.add(f"{value} | {_row(found)}")
        answer.add_figure(f"{name} {value}: step time", found.step_time)
    answer.focus = base
    if len(failed) == len(asked.values) and isinstance(failed[0], InsufficientEvidenceError):
        answer.lines.clear()
        raise failed[0]


def _scenario(conversation: Conversation, asked: Sweep, value: int, base: Plan) -> Scenario:
    study, things = conversation.study, get_args(Thing)
    thing = next((thing for thing in things if thing == asked.of), None)
    if thing is None:
        return scenario_of(study, Change(), with_degree(base, asked.of, value))
    return scenario_of(study, Change(counts=((thing, To(value=value)),)), base)


def _row(found: Prediction) -> str:
    step, rate, memory, mfu = found.step_time, found.tokens_per_second, found.memory, found.mfu
    held = f"{format_bytes(memory.total.value)} ({memory.verdict})" if memory else "unknown"
    return " | ".join(
        (
            format_seconds(step.value) if step else "unknown",
            significant(rate.value, 4) if rate else "unknown",
            held,
            f"{mfu.value:.1%}" if mfu else "unknown",
        )
    )
