"""What to record of the run next, and what each would show."""

import re
from contextlib import suppress

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.prediction.prediction import Prediction
from asap.profiles.gaps import MAXTEXT_SETTINGS

_LOOSE = {Topic.UNKNOWN, Topic.WORTH_IT, Topic.CAPTURE, Topic.FIRST, Topic.SURE}
_PROFILING = re.compile(
    r"\b(?:should|shall|do|need|worth|bother\w*|help\w*|use|point|why)\b[^?]*\b(?:profil(?:e|es|ing)|captur\w+|trac(?:e|es|ing))\b"
    r"(?=[^?\w]*(?:again|another|more|once more|first|now|then|at all|\?|$))",
    re.I,
)


def asks_profiling(question: Question) -> bool:
    """Whether it asks if another profile is worth the effort: "should i bother profiling again"."""
    alone = not question.refs.mentions and question.change.empty and not question.amounts
    return alone and _PROFILING.search(question.text) is not None and question.topic in _LOOSE


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
