"""What of a question an answer does not speak of: said, so that nobody takes it for an answer to all of it."""

import re
from collections.abc import Sequence
from functools import cache

from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.examples import examples
from asap.chat.understanding.topics.topics import Topic
from asap.knowledge.index.terms import CONCEPT, concepts, stems
from asap.plans.prose import plan_spans

_OPEN = {
    Topic.THANKS, Topic.GREETING, Topic.HELP, Topic.UNKNOWN, Topic.HOSTILE, Topic.OUT_OF_SCOPE, Topic.OPINION,
    Topic.FALSE_CLAIM, Topic.REPORTED, Topic.EVIDENCE, Topic.RETRACTION, Topic.SUMMARY, Topic.PRINCIPLE, Topic.TERM,
    Topic.SERVING, Topic.LEARNING, Topic.MAXTEXT, Topic.XLA_FLAGS,
}  # fmt: skip
"""Topics whose answer is of no figure that a word could be missing from."""


_OF_ANY_RUN = {
    f"{CONCEPT}{name}"
    for name in (
        "tpu", "gpu", "chip", "node", "pod", "mesh", "layout", "sharding", "profile", "capture", "memory_profile",
        "hlo", "xla", "lower_bound", "upper_bound",
        "step_time", "throughput", "hbm", "spec_sheet", "training_duration", "parameter_count", "idle",
    )
}  # fmt: skip
"""Concepts that say of what a question is rather than what it asks."""

_RATE = re.compile(r"\btps\b", re.I)
"""Tokens a second, and no plural of tensor parallelism."""


def unused_words(answer: ReplyBuilder, lines: Sequence[str], question: Question) -> list[str]:
    """Concepts of training that a question names, and neither its topic's examples nor the lines of its answer."""
    if answer.topic in _OPEN or answer.complete or not lines:
        return []
    rest = blanked(question.text, [(start, end) for start, end, _ in plan_spans(question.text)])
    rest = _RATE.sub("tokens/s", rest)
    named = dict.fromkeys(concepts(stems(rest)))
    known = _OF_ANY_RUN | _of_topics().get(answer.topic, frozenset()) | set(concepts(stems(" ".join(lines))))
    return [name.removeprefix(CONCEPT).replace("_", " ") for name in named if name not in known]


@cache
def _of_topics() -> dict[str, frozenset[str]]:
    """The concepts in the examples of each topic."""
    found: dict[str, set[str]] = {}
    for topic, text in examples():
        found.setdefault(topic.value, set()).update(concepts(stems(text)))
    return {topic: frozenset(names) for topic, names in found.items()}
