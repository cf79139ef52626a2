"""A figure of the analysis that is repeated with an opinion: "43 % opaque, is that bad", "35.7 s feels slow"."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from asap.chat.answers.phrasing import line
from asap.chat.answers.proposals.order import ranking
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.memory.memory import memory
from asap.chat.answers.single_plans.memory.memory_basis import memory_basis
from asap.chat.answers.single_plans.memory.memory_figure import memory_figure
from asap.chat.answers.this_run.rates.efficiency import efficiency
from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import AsapError
from asap.core.units import GIB
from asap.diagnosis.diagnosis import Finding
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.proposals.reasons.explain import confidence
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.selection.candidate import Candidate

_ROUNDED = 0.02
"""Share by which a figure that is repeated may be rounded."""
_YOUR = re.compile(
    r"\b(?:(?:your|ur|that|those)\s+(?:predicted\s+|modelled\s+)?|you (?:say|said|had|predict\w*|claim\w*"
    r"|told (?:me|us)|expect\w*)\s+)"
    r"~?\W*$",
    re.I,
)
_LEAST_BARE = 4
"""What is smaller and has no unit may be a number of proposals or a degree."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) %")
_Answer = Callable[[Conversation, ReplyBuilder, Question], None]


@dataclass(frozen=True)
class ShownFigure:
    """A figure that the analysis shows.

    Args:
        value: as it is shown, in its unit.
        unit: ``s``, ``%`` or ``GiB``.
        names: what it is called; a message that calls its figure otherwise means another one.
        answer: what it means.
        topic: what the answer is about.
        plan: the proposal that it is of; ``None`` for a figure of the run.
    """

    value: float
    unit: str
    names: str
    answer: _Answer
    topic: Topic
    plan: Plan | None = None


_QUANTITIES = re.compile(
    r"\b(?:mfu|hfu|util\w*|fits?|temporar\w*|activations?|gradients?|parameters?|optimi[sz]er|hbm|memory|vram|opaque|custom|collectives?|communicat\w*|all-\w+|compute|matmul\w*|host|launch\w*"
    r"|bubble|idle|input|goodput|duty|loss|accuracy|bandwidth|network|nvlink|ici|dcn|cost|price|occupancy|power|cpu"
    r"|data|dataloader|disk|storage|checkpoint\w*|eval\w*)\b",
    re.I,
)
"""What figures are of, beside the time and the odds of a plan."""


def figure_shown(conversation: Conversation, question: Question) -> ShownFigure | None:
    """The figure of the analysis that a message repeats; ``None`` where it repeats none, or names another quantity."""
    said = [amount for amount in question.amounts if amount.unit in {"s", "%", "GiB", "GB"}]
    said = said or [amount for amount in question.amounts if not amount.unit and _is_yours(amount, question.text)]
    said = said or [amount for amount in question.amounts if not amount.unit and amount.value % 1]
    if len(said) != 1:
        return None
    try:
        near = [figure for figure in _shown(conversation) if _repeats(said[0], figure)]
    except AsapError:
        return None
    ranked = question.refs.ranked
    if ranked:
        near = [figure for figure in near if figure.plan in (None, *ranked)]
    named = {word.lower() for word in _QUANTITIES.findall(question.text)}
    if named:
        near = [figure for figure in near if any(re.search(figure.names, word) for word in named)]
    return min(near, key=lambda figure: abs(figure.value - said[0].value), default=None)


def quotes_figure(conversation: Conversation, amount: Amount) -> bool:
    """Whether an amount repeats a figure that the analysis shows: "59.9" of "59.9 GiB"."""
    if amount.unit not in {"s", "%", "GiB", "GB"} and not (not amount.unit and amount.value % 1):
        return False
    try:
        return any(_repeats(amount, figure) for figure in _shown(conversation))
    except AsapError:
        return False


def _is_yours(amount: Amount, text: str) -> bool:
    """Whether a figure without a unit is called the engine's own: "your 41 is nonsense"."""
    return amount.value >= _LEAST_BARE and _YOUR.search(text[: amount.start]) is not None


def calls_it_yours(question: Question) -> bool:
    """Whether it calls a figure without a unit the engine's own."""
    return any(not amount.unit and _is_yours(amount, question.text) for amount in question.amounts)


def answer_shown(conversation: Conversation, answer: ReplyBuilder, question: Question, figure: ShownFigure) -> None:
    """What the figure means; it is no measurement that was reported."""
    answer.topic = figure.topic
    figure.answer(conversation, answer, question)


def _repeats(amount: Amount, figure: ShownFigure) -> bool:
    unit = {"GB": "GiB", "": figure.unit}.get(amount.unit, amount.unit)
    if unit != figure.unit:
        return False
    if not amount.unit and amount.value % 1:
        shown = len(amount.text.partition(".")[2])
        return round(figure.value, shown) == amount.value
    cut = amount.value == int(amount.value) == int(figure.value)
    return cut or abs(amount.value - figure.value) <= _ROUNDED * figure.value


def _shown(conversation: Conversation) -> Iterator[ShownFigure]:
    """Figures of the run, then those of the proposals."""
    study = conversation.study
    for finding in study.diagnosis.findings:
        for share in _PERCENT.findall(finding.statement)[:1]:
            names = rf"{finding.kind.value}|{_WORDS.get(finding.kind.value, finding.kind.value)}"
            yield ShownFigure(float(share), "%", names, _finding(finding), Topic.BOTTLENECK)
    now = modelled_now(study)
    step = modelled_step(study, now)
    for share in step.shares if step else ():
        name = share.name.lower().split()[0]
        yield ShownFigure(share.fraction * 100, "%", _WORDS.get(name, name), bottleneck, Topic.BOTTLENECK)
    measured = current_step_time(study, conversation.evidence) or (now.step_time if now else None)
    if measured is not None:
        yield ShownFigure(measured.value, "s", "step", _slow, Topic.EFFICIENCY)
    if now is not None and now.mfu is not None:
        yield ShownFigure(now.mfu.value * 100, "%", "mfu|util", efficiency, Topic.EFFICIENCY)
    if now is not None and now.memory is not None:
        yield ShownFigure(now.memory.total.value / GIB, "GiB", "hbm|memory|vram", memory, Topic.MEMORY)
        for part in now.memory.parts:
            name = _PARTS.get(part.name, part.name)
            yield ShownFigure(part.size_bytes / GIB, "GiB", name, _of_what_runs, Topic.MEMORY)
    for candidate in conversation.proposals:
        yield from _of_proposal(conversation, candidate)


_WORDS = {
    "opaque": "opaque|custom", "communication": r"collective|communic|all-", "all-reduce": r"collective|communic|all-",
    "all-gather": r"collective|communic|all-", "compute": "compute|matmul", "hbm": "hbm|bandwidth|memory",
    "host": "host|launch", "pipeline": "bubble", "idle": "idle",
}  # fmt: skip


_PARTS = {"temporaries": "temporar", "optimizer": "optimi", "activations": "activation", "gradients": "gradient"}


def _of_what_runs(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The HBM of what runs now by part; where a part of it comes from."""
    memory_basis(conversation, answer, replace(question, plans=()))


def _of_proposal(conversation: Conversation, candidate: Candidate) -> Iterator[ShownFigure]:
    def sure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
        ranking.sure(conversation, answer, [candidate.plan])
        answer.add(
            f'One run settles it: "{candidate.plan} measured … s". Until then more of the record narrows it:'
            " a profile, and a measured step of what runs now."
        )

    def fits(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
        memory_figure(conversation, answer, replace(question, plans=(candidate.plan,)))

    prediction = prediction_of(conversation, candidate.plan)
    relative, odds = prediction.relative_step_time, confidence(conversation.study, prediction, ()).faster
    figures = [odds.value] if odds is not None else []
    if relative is not None:
        figures += [abs(end - 1) for end in (relative.value, relative.low, relative.high) if end is not None]
    for figure in figures:
        yield ShownFigure(figure * 100, "%", "step", sure, Topic.SURE, candidate.plan)
    if prediction.step_time is not None:
        yield ShownFigure(prediction.step_time.value, "s", "step", sure, Topic.SURE, candidate.plan)
    held = prediction.memory
    if held is not None:
        yield ShownFigure(held.total.value / GIB, "GiB", "hbm|memory|vram|fit", fits, Topic.MEMORY, candidate.plan)
    if held is not None and held.probability_fits is not None:
        yield ShownFigure(held.probability_fits * 100, "%", "fit", fits, Topic.MEMORY, candidate.plan)


def _finding(finding: Finding) -> _Answer:
    def say(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
        first = finding.kind is conversation.study.diagnosis.bottleneck
        answer.add(finding.statement, *([f"Next: {finding.advice}."] if finding.advice else []))
        for item in finding.evidence:
            answer.add_figure(item.fact, item.quantity)
        if first:
            answer.add("It is what holds the run back most.")
        else:
            held = conversation.study.diagnosis
            answer.add(f"What holds the run back most is another part: {held.statement}")

    return say


def _slow(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the step time is made of, and how far it is from the peak of the chips."""
    efficiency(conversation, answer, replace(question, plans=()))
    best = next(iter(conversation.proposals), None)
    if best is not None:
        answer.add(f"The best bet to shorten it: {line(conversation, best)}.")
