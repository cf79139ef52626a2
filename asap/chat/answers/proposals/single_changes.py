"""Which setting matters most, and which hardly: each of what runs now changed alone, by what that does to the step."""

import re
from collections.abc import Mapping, Sequence

from asap.chat.answers.phrasing import expectation, fit
from asap.chat.answers.single_plans.changed_alone import changed_alone, changes_in_words, current_plan
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits
from asap.proposals.selection.choice import MEASURABLE

_SHOWN, _LEAST_SHOWN = 5, 3
_LEAST = re.compile(
    r"\b(?:hardly|barely|least|scarcely|ignore|leave alone|irrelevant|unimportant|negligible"
    r"|(?:no|little) (?:difference|effect|influence|impact))\b|(?:\bnot|n't) (?:matter|make|change|affect|worth)\b",
    re.I,
)


def single_changes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The best value of each setting that fits, the one that shortens the step most first; or what hardly matters.

    Raises:
        InsufficientEvidenceError: the current plan is not known, or nothing can be predicted.
    """
    study, now = conversation.study, current_plan(conversation)
    settings = changed_alone(conversation)
    if _LEAST.search(question.text):
        _least(answer, settings)
        return
    fitting = [[one for one in values if fits(one)] for values in settings.values()]
    best = [min(values, key=_ratio) for values in fitting if values]
    if not best:
        answer.add("No setting can be changed alone here, as far as can be predicted.")
        return
    ordered = sorted((one for one in best if _ratio(one) <= 1 - MEASURABLE), key=_ratio)[:_SHOWN]
    if not ordered:
        least = format_percent(MEASURABLE, 0)
        answer.add(f"None: changed alone, no setting is expected to shorten the step by {least} or more.")
        return
    answer.add(f"{changes_in_words(study, ordered[0], now)} matters most; each setting of what runs now changed alone:")
    for prediction in ordered:
        answer.add(f"- {changes_in_words(study, prediction, now)}: {expectation(prediction)}{fit(prediction)}")
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    answer.focus = ordered[0].plan


def _least(answer: ReplyBuilder, settings: Mapping[str, Sequence[Prediction]]) -> None:
    """The settings whose values change the step least, whether they fit or not."""
    effect = {name: max(abs(_ratio(one) - 1) for one in values) for name, values in settings.items()}
    ordered = sorted(
        ((name.replace(" ", " against "), most) for name, most in effect.items()), key=lambda item: item[1]
    )
    little = [(name, change) for name, change in ordered if change < MEASURABLE] or ordered[:_LEAST_SHOWN]
    if not little:
        answer.add("No setting can be changed alone here, as far as can be predicted.")
        return
    answer.add(f"{little[0][0]} matters least for the step time; changed alone, whatever the value (modelled):")
    answer.add(*(f"- {name}: the step changes by at most {format_percent(change)}" for name, change in little))


def _ratio(prediction: Prediction) -> float:
    quantity = prediction.relative_step_time
    return quantity.value if quantity else float("inf")
