"""Which is cheaper, what runs now or the change that was just looked at: "v5p instead?" · "cheaper per token?"."""

import re

from asap.chat.answers.phrasing import fit
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import is_of_settings
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import significant
from asap.hardware import Slice
from asap.prediction.prediction import Prediction

_CHEAPER = re.compile(
    r"\b(?:cheap\w*|(?:less|more) expensive|better value|costs? (?:me |us )?(?:less|more)|worth the money"
    r"|(?:faster|better|more|tokens?|throughput|perf\w*) (?:per|for the|a|/) ?(?:dollar|buck|money|\$))",
    re.I,
)
_LONGEST = 9
_TOKENS = 1e9


def asks_cheaper(question: Question) -> bool:
    """Whether it weighs the cost of the change that was spoken of just before, and names nothing else."""
    change = question.context.change
    of_change = question.context.topic is Topic.WHAT_IF and change is not None and not is_of_settings(change)
    named = question.refs.ranked or question.refs.written or not question.change.empty or question.names_money
    short = len(question.text.split()) <= _LONGEST and not named
    return of_change and short and _CHEAPER.search(question.text) is not None


def cheaper(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Chip-hours for a billion tokens of the best plan, here and there, and the price at which they are level.

    Raises:
        InsufficientEvidenceError: no plan or rate is known.
    """
    change, study = question.context.change, conversation.study
    plan = next(iter([*conversation.order[:1], *([study.plan] if study.plan else [])]), None)
    if change is None or plan is None:
        raise InsufficientEvidenceError("no plan is known to compare", where=conversation.id)
    scenario = scenario_of(study, change, plan)
    here, there = prediction_of(conversation, plan), predict_scenario(scenario)
    hours = _hours(here, study.slice), _hours(there, scenario.study.slice)
    if hours[0] is None or hours[1] is None:
        raise InsufficientEvidenceError("the tokens/s of both are not known", where=conversation.id)
    said = " and ".join(scenario.changes)
    before, after = significant(hours[0]), significant(hours[1])
    ratio = hours[0] / hours[1]
    chips = [one.chip.name for one in (study.slice, scenario.study.slice) if one is not None]
    answer.complete, answer.focus, answer.change = True, plan, change
    if len(set(chips)) > 1:
        answer.add(
            f"With {said}, a billion tokens take {after} chip-hours instead of {before} ({plan}, modelled): it is"
            f" cheaper as long as a chip-hour there costs less than {significant(ratio)} times one here."
        )
    else:
        verdict = "Cheaper" if ratio > 1 else "Not cheaper"
        answer.add(
            f"{verdict}: with {said}, a billion tokens take {after} chip-hours instead of {before} ({plan}, modelled)."
        )
    answer.add(f"There: {there.plan}{fit(there)}.")


def _hours(prediction: Prediction, hardware: Slice | None) -> float | None:
    rate = prediction.tokens_per_second
    return hardware.chips / rate.value * _TOKENS / 3600 if rate is not None and hardware is not None else None
