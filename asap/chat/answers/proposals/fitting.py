"""What makes a run fit that does not: a single setting, else the proposals, and what each costs in time."""

import re
from collections.abc import Sequence

from asap.chat.answers.phrasing import expectation, fit, list_proposals
from asap.chat.answers.single_plans.changed_alone import changed_alone, changes_in_words
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.statements.clauses import constraints_of_parts, read_clause
from asap.core.errors import InsufficientEvidenceError
from asap.evidence.fact import StatedFact
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits

_SHOWN = 5


_SAVED = re.compile(r"\b(?:fit\w*|oom\w*|out of memory|mem(?:ory)?|hbm|vram|gi?bs?|bytes|activations?)\b", re.I)
"""Words for what is to be saved; without them a "fix" is whatever makes the run better."""
_FITS = re.compile(r"\bfits?\b", re.I)
_WITHOUT = re.compile(r"\b(?:without|no|keep\w*)\b.*$", re.I)


def limits_of_fit(conversation: Conversation, question: Question) -> tuple[StatedFact, ...]:
    """What a run that does not fit may not use to fit: "smallest change to fit without accumulation"."""
    asked = _WITHOUT.search(question.text) if _FITS.search(question.text) else None
    now = conversation.study.plan
    if asked is None or question.plans or question.unused or now is None:
        return ()
    held = prediction_of(conversation, now).memory
    if held is None or held.fits:
        return ()
    clause = read_clause(asked.group(), conversation.scene)
    return tuple(constraints_of_parts(clause, conversation.scene, sought=True))


def fitting_within(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What makes it fit within the limits of the question; raises as :func:`fitting` does."""
    answer.limits, answer.complete = limits_of_fit(conversation, question), True
    fitting(conversation, answer, answer.limits)


def fitting(conversation: Conversation, answer: ReplyBuilder, limits: Sequence[StatedFact] = ()) -> None:
    """The smallest change first: one setting alone, the fastest first, then the proposals.

    Args:
        conversation: what was analysed, stated and spoken of.
        answer: where the lines go.
        limits: what the change may not use; nothing of it is recorded.

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
    values = changed_alone(conversation).values()
    alone = [min(found, key=_seconds) for each in values if (found := _fitting(each, limits))]
    within = f" ({'; '.join(str(limit).removeprefix('constraint: ') for limit in limits)})" if limits else ""
    if not alone:
        answer.add(f"No setting makes it fit when it is changed alone{within}. These plans do:")
        list_proposals(conversation.with_evidence(limits), answer)
        return
    answer.add(f"One setting is enough{within}; those that make it fit when changed alone, the fastest first:")
    for prediction in sorted(alone, key=_seconds)[:_SHOWN]:
        answer.add(
            f"- {changes_in_words(conversation.study, prediction, now)}: {expectation(prediction)}{fit(prediction)}"
        )
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    answer.focus = min(alone, key=_seconds).plan


def names_memory(text: str) -> bool:
    """Whether it says that memory is to be saved, and not only that something is to be mended."""
    return _SAVED.search(text) is not None


def _fitting(values: Sequence[Prediction], limits: Sequence[StatedFact]) -> list[Prediction]:
    kept = (one for one in values if fits(one))
    return [one for one in kept if not any(limit.forbids(one.plan, _held(one)) for limit in limits)]


def _held(prediction: Prediction) -> float | None:
    return prediction.memory.total.value if prediction.memory else None


def _seconds(prediction: Prediction) -> float:
    return prediction.step_time.value if prediction.step_time else float("inf")
