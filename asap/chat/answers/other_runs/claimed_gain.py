"""A gain that is expected of a change, or was seen with it: "fp8 should be 2x no?", "we only got 35 % out of it"."""

import re

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.changes import Change, is_of_settings
from asap.chat.understanding.question import Question
from asap.core.units import format_percent, significant
from asap.evidence.anchor import modelled_now
from asap.prediction.prediction import Prediction

_GAIN = re.compile(
    r"\b(?:should|supposed|expect\w*|promis\w+|ought|advertis\w+|claim\w*|theor\w*|paper|blog|out of (?:it|that)"
    r"|speed-?ups?|faster|quicker|(?:got|get|gets|saw|see|gain\w*|bring\w*|gave|gives?)\b[^.?!]*\b"
    r"(?:out of|from|with|only|just|it|that)"
    r"|(?:only|just) (?:got|get|saw|see|gain\w*))\b",
    re.I,
)
_NARROW = {"fp8", "int8", "fp4", "int4", "nanoo_fp8"}
_MEMORY = re.compile(r"\b(?:memory|hbm|vram)\b", re.I)
_SLOWER = re.compile(r"\bslower\b", re.I)


def claimed_gain(question: Question) -> tuple[Change, Amount] | None:
    """The change that a gain is named of, and the gain; ``None`` where a line names none."""
    gains = [amount for amount in question.unused if amount.unit in {"x", "%"} and amount.value > 0]
    if len(gains) != 1 or len(question.unused) > 1 or not _GAIN.search(question.text) or _SLOWER.search(question.text):
        return None
    own = not question.change.empty
    change = question.change if own else question.context.change
    if change is None or question.refs.ranked or question.refs.written or change.remat == "any":
        return None
    return change, gains[0]


def say_gain(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the change brings by the model, beside the gain that is named, and what it leaves as it is.

    Raises:
        InsufficientEvidenceError: the engine cannot tell.
        PlanError: the plan cannot run then.
    """
    claimed = claimed_gain(question)
    if claimed is None:
        return
    change, amount = claimed
    study = conversation.study
    scenario = scenario_of(study, change)
    found = predict_scenario(scenario)
    now = modelled_now(study) or prediction_of(conversation, found.plan)
    answer.change, answer.complete = change, True
    rate = _rate(now, found)
    named = f"{amount.value:g} times as fast" if amount.unit == "x" else f"{amount.text} more"
    if not scenario.changes:
        answer.add("That is so already: nothing would change.")
        return
    before, after = now.memory, found.memory
    if _MEMORY.search(question.text) and before is not None and after is not None:
        saved = 1 - after.total.value / before.total.value
        less = f"{format_percent(abs(saved), 0)} {'less' if saved > 0 else 'more'}"
        answer.add(f"With {' and '.join(scenario.changes)} HBM is expected to be {less}; you name {amount.text}.")
    elif rate is not None:
        answer.add(
            f"With {' and '.join(scenario.changes)} the model expects {significant(rate)} times the throughput of now;"
            f" you name {named}."
        )
    answer.add(f"- {found.plan}: {figures_of(found)}")
    answer.add_figure(f"{found.plan}: step time", found.step_time)
    compute = _compute(now)
    if change.precision in _NARROW and compute is not None:
        answer.add(
            f"Narrower arithmetic shortens the matrix products alone: compute is {format_percent(compute, 0)} of the"
            " step now (modelled), and what else it waits for stays as it is."
        )
    answer.add(
        "Nothing is recorded: what was seen with it is of another run."
        if not is_of_settings(change)
        else 'Nothing is recorded: state what a run with it measured, as in "with remat=full the step took 2.4 s".'
    )


def _rate(now: Prediction, then: Prediction) -> float | None:
    if now.tokens_per_second is None or then.tokens_per_second is None:
        return None
    return then.tokens_per_second.value / now.tokens_per_second.value


def _compute(now: Prediction) -> float | None:
    step = sum(part.exposed_s for part in now.parts)
    compute = sum(part.exposed_s for part in now.parts if part.name == "compute")
    return compute / step if step else None
