"""What another rematerialisation would change."""

from collections.abc import Sequence

from asap.chat.answers.phrasing import expectation
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.changes import remat_policy
from asap.core.errors import InsufficientEvidenceError
from asap.levers.rematerialisation import policies
from asap.plans import Remat
from asap.prediction.predict_study import expect
from asap.proposals.search import run_of
from asap.reports import phrases
from asap.study.study import Study


def change_remat(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The current plan with other rematerialisation; raises InsufficientEvidenceError without the architecture."""
    study = conversation.study
    if study.plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    named = remat_policy(text)
    policies = _policies(study) if named is None else [named]
    plans = [study.plan.model_copy(update={"remat": policy}) for policy in policies if policy != study.plan.remat]
    predictions = expect(study, plans)
    if all(prediction.method == "profile_ratios" for prediction in predictions):
        raise InsufficientEvidenceError(
            "the effect of another rematerialisation depends on the architecture, which is not on record",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
        )
    answer.add(f"The same mesh with another rematerialisation (now {study.plan.remat or 'not on record'}):")
    for prediction in predictions:
        memory = prediction.memory
        fits = "fits" if memory and memory.fits else "does not fit"
        held = f", HBM {phrases.memory_phrase(prediction)} ({fits})" if memory else ""
        answer.add(f"- {prediction.plan}: {expectation(prediction)}{held}")
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)


def _policies(study: Study) -> Sequence[Remat]:
    """The policies that the framework knows."""
    if study.slice is None:
        return tuple(Remat)
    return policies(run_of(study))
