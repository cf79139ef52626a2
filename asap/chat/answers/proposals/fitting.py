"""What makes a run fit that does not: a single setting, else the proposals, and what each costs in time."""

from asap.chat.answers.phrasing import expectation, fit, list_proposals
from asap.chat.answers.single_plans.changed_alone import changed_alone, changes_in_words
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.errors import InsufficientEvidenceError
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits

_SHOWN = 5


def fitting(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The smallest change first: one setting alone, the fastest first, then the proposals.

    Raises:
        InsufficientEvidenceError: the current plan is not known, or HBM cannot be predicted.
    """
    now = conversation.study.plan
    held = prediction_of(conversation, now) if now is not None else None
    if now is None or held is None or held.memory is None:
        raise InsufficientEvidenceError("HBM of the current plan cannot be predicted", where=conversation.id)
    answer.add(f"What runs now: {now}{fit(held)}.")
    answer.add_figure(f"{now}: HBM", held.memory.total)
    if held.memory.fits:
        answer.add(
            "It fits as it is, as far as is predicted.",
            'If it ran out of memory, say so, as in "the baseline ran out of memory".',
        )
        return
    alone = [min(found, key=_seconds) for values in changed_alone(conversation).values() if (found := _fitting(values))]
    if not alone:
        answer.add("No setting makes it fit when it is changed alone. The proposals do:")
        list_proposals(conversation, answer)
        return
    answer.add("One setting is enough; those that make it fit when changed alone, the fastest first:")
    for prediction in sorted(alone, key=_seconds)[:_SHOWN]:
        answer.add(
            f"- {changes_in_words(conversation.study, prediction, now)}: {expectation(prediction)}{fit(prediction)}"
        )
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    answer.focus = min(alone, key=_seconds).plan


def _fitting(values: list[Prediction]) -> list[Prediction]:
    return [one for one in values if fits(one)]


def _seconds(prediction: Prediction) -> float:
    return prediction.step_time.value if prediction.step_time else float("inf")
