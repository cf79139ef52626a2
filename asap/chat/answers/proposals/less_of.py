"""What makes a part of the step smaller: "how do we get rid of the all-reduce?", "how can i shrink the bubble?"."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_seconds
from asap.plans.axes import MEANINGS
from asap.prediction.prediction import Prediction, TimePart
from asap.proposals.selection.candidate import fits

_SHRINK = re.compile(
    r"\b(?:get(?:ting)? rid of|reduc\w+|cut(?:ting)?(?: down)?(?: on)?|shrink\w*|lower\w*|avoid\w*|kill\w*|eliminat\w+"
    r"|remov\w+|hid(?:e|ing)|minimi[sz]\w+|do (?:something |anything )?about|help(?:s)? (?:with|against)|less|fix\w*"
    r"|bring down|speed up|drop\w*)\b",
    re.I,
)
_HOW = re.compile(r"\b(?:how|what|can|could|is there|any(?:thing)?|way|ways)\b", re.I)
_IT = re.compile(r"\b(?:it|that|this|those|these|them)\W*$", re.I)
_COLLECTIVES = re.compile(r"\b(?:collectives?|communication|network|exchange|ici|nvlink|infiniband)\b", re.I)
_OTHERS = {Topic.XLA_FLAGS, Topic.PRINCIPLE, Topic.OPERATIONS, Topic.ROOFLINE}
"""Topics of questions that ask by what means, or for a figure of what runs."""
_PARTS: tuple[tuple[str, str], ...] = (
    (r"all[- ]?reduc\w*", "all-reduce"), (r"all[- ]?gather\w*", "all-gather"),
    (r"reduce[- ]?scatter\w*", "reduce-scatter"), (r"all[- ]?to[- ]?all\w*", "all-to-all"),
    (r"collective[- ]?permut\w*|p2p|sends?", "collective-permute"), (r"bubbles?", "pipeline bubble"),
    (r"hbm traffic|memory (?:traffic|bandwidth)", "hbm"),
    (r"host (?:time|overhead)|launch\w* overhead|kernel launch\w*", "host"),
)  # fmt: skip


def asks_for_less(question: Question) -> bool:
    """Whether it asks how a part of the step can be made smaller; "it" is what was said to hold the run back."""
    text, left = question.text, re.sub("|".join(words for words, _ in _PARTS), " ", question.text, flags=re.I)
    asked = _SHRINK.search(left) is not None and _HOW.search(left) is not None
    if not asked or question.topic in _OTHERS or question.refs.written or not question.change.empty:
        return False
    pointed = question.context.topic in {Topic.BOTTLENECK, Topic.COLLECTIVES} and _IT.search(text) is not None
    return question.refs.wish is None and (pointed or bool(_names(text)) or _COLLECTIVES.search(text) is not None)


def less_of(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The part now, in each proposal, and in the ranked plan that has least of it.

    Raises:
        InsufficientEvidenceError: no plan is known, or its step is not predicted by part.
    """
    now = conversation.study.plan
    if now is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    before = prediction_of(conversation, now)
    named = _asked(before, question.text)
    if not named:
        raise InsufficientEvidenceError(
            "the step of what runs now has no such part, as far as it is predicted", where=conversation.id
        )
    title = ", ".join(_title(part) for part in named)
    answer.add(f"{title}: {_share(before, named)} of what runs now, {now} (modelled). In the proposals:")
    for rank, candidate in enumerate(conversation.proposals, 1):
        answer.add(line(conversation, candidate, rank), f"   {title}: {_share(candidate.prediction, named)}")
    candidates = conversation.revised.ranked.candidates
    ranked = [one for one in candidates if _step(one.prediction) and fits(one.prediction)]
    least = min(ranked, key=lambda one: (_seconds(one.prediction, named), -one.score), default=None)
    if least is not None and least.plan not in conversation.order:
        answer.add(f"Least of it: {line(conversation, least)}", f"   {title}: {_share(least.prediction, named)}")
    answer.focus = next(iter(conversation.order), None)


def _names(text: str) -> list[str]:
    return [name for words, name in _PARTS if re.search(rf"(?<![\w-])(?:{words})(?![\w-])", text, re.I)]


def _asked(prediction: Prediction, text: str) -> list[TimePart]:
    """The parts that are named, all collectives, or for "it" the part that takes longest beside compute."""
    exposed = [part for part in prediction.parts if part.exposed_s > 0]
    sent = [part for part in exposed if part.axis is not None or part.name.startswith("collectives")]
    if names := _names(text):
        return [part for part in exposed if any(name in part.name for name in names)]
    if _COLLECTIVES.search(text):
        return sent
    beside = [part for part in exposed if not part.name.startswith("compute")]
    return sorted(beside, key=lambda part: -part.exposed_s)[:1]


def _title(part: TimePart) -> str:
    meaning = next((meaning for axis, meaning in MEANINGS.items() if axis == part.axis), part.axis)
    name = {"hbm": "HBM traffic", "host": "host time"}.get(part.name, part.name)
    return f"{name} of {meaning}" if meaning else name


def _seconds(prediction: Prediction, named: list[TimePart]) -> float:
    kinds = {(part.name, part.axis) for part in named}
    return sum(part.exposed_s for part in prediction.parts if (part.name, part.axis) in kinds)


def _step(prediction: Prediction) -> float | None:
    return sum(part.exposed_s for part in prediction.parts) or None


def _share(prediction: Prediction, named: list[TimePart]) -> str:
    took, step = _seconds(prediction, named), _step(prediction)
    if step and not took:
        return "none"
    return f"{format_seconds(took)}, {format_percent(took / step)} of its step" if step else "not predicted"
