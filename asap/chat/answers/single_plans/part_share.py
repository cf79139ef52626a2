"""How much of a step a collective takes, of one axis or of all: "how much of the step is tp allreduce"."""

import re

from asap.chat.answers.single_plans.named_figures import subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.worth import axes_in_short
from asap.core.units import format_percent, format_seconds
from asap.plans.axes import WORDS, Axis
from asap.prediction.prediction import Prediction, TimePart

_SHARE = re.compile(
    r"\b(?:how (?:much|big|long|many (?:ms|s|%|percent))|what (?:share|fraction|part|percent\w*|%)"
    r"|(?:share|fraction|%) of)\b",
    re.I,
)
_KIND = re.compile(
    r"\b(?P<kind>all[- ]?reduces?|all[- ]?gathers?|reduce[- ]?scatters?|all-to-alls?|collective-permutes?)\b", re.I
)
_ANY = re.compile(r"\b(?:comm\w*|collectives?|traffic|exchanges?)\b", re.I)
_LONG = re.compile(r"\b(tensor|expert|context|pipeline|fsdp|data|model)\b", re.I)
_LONGEST = 12


def asks_part_share(conversation: Conversation, question: Question) -> bool:
    """Whether it asks for the time of collectives of a kind or an axis, where the model predicts them."""
    text = question.text
    named = _KIND.search(text) is not None or (_ANY.search(text) is not None and bool(_axes(text)))
    short = len(text.split()) <= _LONGEST and not question.operations and not question.refs.written
    if not (named and short and _SHARE.search(text)) or not question.change.empty:
        return False
    profile = conversation.study.profile
    measured = profile is not None and not profile.stated and bool(profile.operations)
    return not measured


def part_share(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Seconds and share of each, exposed; that there is none where the plan has none."""
    kind, axes = _KIND.search(question.text), _axes(question.text)
    answer.complete = True
    for name, prediction in subjects(conversation, question):
        parts = [part for part in prediction.parts if part.axis is not None]
        parts = [part for part in parts if not axes or part.axis in axes]
        parts = [part for part in parts if kind is None or _letters(kind["kind"]) in _letters(part.name)]
        said = ", ".join(_said(prediction, part) for part in parts)
        missing = f"There is no {kind['kind'] if kind else 'such collective'} in {prediction.plan}."
        answer.add(f"{name}: {said} (modelled, what nothing hides)." if parts else missing)
        answer.add_figure(f"{prediction.plan}: step time", prediction.step_time)
        answer.focus = prediction.plan


def _axes(text: str) -> set[Axis]:
    return {*axes_in_short(text), *(WORDS[found.lower()] for found in _LONG.findall(text))}


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower()).removesuffix("s")


def _said(prediction: Prediction, part: TimePart) -> str:
    step = prediction.step_time.value if prediction.step_time is not None else 0.0
    share = f", {format_percent(part.exposed_s / step)} of the step" if step else ""
    return f"{part.name} of {part.axis} {format_seconds(part.exposed_s)}{share}"
