"""What to record of the run next, and what each would show."""

from contextlib import suppress

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.errors import InsufficientEvidenceError
from asap.prediction.prediction import Prediction
from asap.profiles.gaps import MAXTEXT_SETTINGS


def capture(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What to record next, and what each would show."""
    study = conversation.study
    gaps = study.diagnosis.missing
    now = _unfit(conversation)
    if now is not None:
        answer.add(
            f"{now.plan} is predicted not to fit: nothing can be captured of it before it runs. Start a proposal,"
        )
        answer.add("and capture of that:")
    else:
        answer.add("Capture next:")
    answer.add(*(f"- {gap.what.rstrip('.')}: {gap.capture or MAXTEXT_SETTINGS}" for gap in gaps))
    answer.add(*(f"- {finding.advice}" for finding in study.diagnosis.findings if finding.advice))
    model, workload = study.experiment.model, study.experiment.workload
    unknown = ["the architecture"] if model is None else [f"the model's {name}" for name in model.missing()]
    unknown += ["the global batch"] if workload.global_batch is None else []
    unknown += ["the sequence length"] if workload.sequence_length is None else []
    if unknown:
        answer.add(f"- for narrower intervals: {', '.join(unknown)} (asap experiments add ID --config FILE)")
    current = conversation.proposals
    if current:
        answer.focus = current[0].plan
        answer.add(f'- a step time of {current[0].plan}, then tell me: "proposal 1 measured … s"')


def _unfit(conversation: Conversation) -> Prediction | None:
    """What runs now, where it is predicted not to fit."""
    with suppress(InsufficientEvidenceError):
        now = conversation.revised.ranked.incumbent
        return now if now is not None and now.memory is not None and not now.memory.fits else None
    return None
