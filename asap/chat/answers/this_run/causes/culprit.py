"""Whether a part of the step is what holds the run back: "isn't ep=8 the real problem?", "the a2a is killing us"."""

import re
from dataclasses import replace

from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import named_axes
from asap.chat.understanding.words.worth import axes_in_short
from asap.core.units import format_percent, format_seconds
from asap.prediction.prediction import TimePart

_BLAMES = re.compile(
    r"\b(?:the (?:\w+ )?(?:problem|bottleneck|culprit|issue)\b|kill(?:s|ing) (?:us|it|me|perf\w*)|hurt(?:s|ing) us"
    r"|to blame|eat(?:s|ing) (?:us|it|our|the)|(?:slow(?:s|ing)|hold(?:s|ing)) (?:us|it|this) (?:down|back)"
    r"|because of|due to|caused by|dominat\w+|what(?:'s| is) slow\w*)",
    re.I,
)
_KINDS: tuple[tuple[str, str], ...] = (
    (r"all[- ]?to[- ]?all\w*", "all-to-all"), (r"all[- ]?reduc\w*", "all-reduce"), (r"all[- ]?gather\w*", "all-gather"),
    (r"reduce[- ]?scatter\w*", "reduce-scatter"), (r"bubbles?", "pipeline bubble"), (r"launch\w*|host", "host"),
)  # fmt: skip


def blamed(conversation: Conversation, question: Question) -> list[TimePart]:
    """The parts of the step of what runs now that a question blames; empty where it blames none that are predicted."""
    now = conversation.study.plan
    if now is None or not _BLAMES.search(question.text) or question.refs.ranked:
        return []
    axes = {axis for plan in question.refs.written for axis in named_axes(plan)} | set(axes_in_short(question.text))
    if question.refs.wish is not None:
        axes.add(question.refs.wish.axis)
    if any(plan.degree(axis) != now.degree(axis) for plan in question.refs.written for axis in named_axes(plan)):
        return []
    kinds = [name for words, name in _KINDS if re.search(rf"\b(?:{words})\b", question.text, re.I)]
    parts = prediction_of(conversation, now).parts
    return [part for part in parts if part.axis in axes or any(kind in part.name for kind in kinds)]


def culprit(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The share of each part that is blamed, what does hold the run back, and another degree of what is blamed."""
    now = conversation.study.plan
    if now is None:
        return
    found = prediction_of(conversation, now)
    step = sum(part.exposed_s for part in found.parts)
    most = max(found.parts, key=lambda part: part.exposed_s)
    named = blamed(conversation, question)
    answer.add("Yes, by the model:" if most in named else "Not by the model:")
    for part in named:
        of = f" of {part.axis}" if part.axis else ""
        answer.add(
            f"- {part.name}{of}: {format_seconds(part.exposed_s)} of a step of {format_seconds(step)},"
            f" {format_percent(part.exposed_s / step)} (modelled)"
        )
    bottleneck(conversation, answer, replace(question, plans=()))
    if question.refs.written:
        plan_answers.why_not(conversation, answer, question.refs.written[0])
