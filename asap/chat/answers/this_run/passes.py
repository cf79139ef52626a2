"""How the compute of a step divides over the forward pass, the backward pass, and what is computed again."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.answers.this_run.rates.efficiency import compute_of, recomputed_share
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import missing
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_seconds

_PASS = re.compile(
    r"\b(?:forward|backward|fwd|bwd|bkwd)\b(?=[^.?!]*\b(?:pass\w*|time|takes?|long|share|split|part|most|dominat\w*|much"
    r"|slow\w*|cost\w*|ratio|vs|versus)\b|\s*(?:/|and|vs\.?|or)\s*(?:back|bwd|forw|fwd))"
    r"|\b(?:long|much|dominat\w*|split|ratio|share|slow\w*)\b[^.?!]*\b(?:forward|backward|fwd|bwd|bkwd)\b",
    re.I,
)
_BACKWARD = 2
"""FLOPs of the backward pass over those of the forward pass: a product for the inputs, and one for the weights."""


def asks_passes(question: Question) -> bool:
    """Whether it asks how long the forward or the backward pass takes."""
    return _PASS.search(question.text) is not None and question.change.empty


def passes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now; raises InsufficientEvidenceError where it is not predicted."""
    study = conversation.study
    plan = next(iter(question.plans), study.plan)
    found = prediction_of(conversation, whole(conversation, plan)) if plan is not None else None
    if found is None or found.step_time is None or not found.parts:
        raise InsufficientEvidenceError(f"that takes {missing(study)}", where=conversation.id, hint="--config FILE")
    answer.focus, step = found.plan, found.step_time.value
    compute, again = compute_of(found), recomputed_share(study, found) * step
    forward = (compute - again) / (1 + _BACKWARD)
    answer.add(
        f"Compute is {format_seconds(compute)} of a step of {format_seconds(step)} of {found.plan} (modelled). By"
        f" FLOPs: forward {format_seconds(forward)}, backward {format_seconds(_BACKWARD * forward)}"
        + (f", computed again in the backward pass {format_seconds(again)}." if again else "."),
        "What waits for collectives, HBM and the host is not split by pass here; a profile shows both passes.",
    )
