"""Single figures that a question names, of any plan and after any change: the pipeline's bubble, host memory, …"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from asap.chat.answers.phrasing import expectation
from asap.chat.answers.single_plans.figures import say_unknown, subjects
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import asks_why
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.prediction.prediction import Prediction

_QUANTITY = re.compile(
    r"\b(?:how (?:much|many|big|large|long|high|bad|small|expensive)|what(?:'s| is| are| would| does| share| part"
    r"| fraction| percent\w*|)|which|size|share|fraction|percent\w*|cost\w*|takes?|spent|lost|explain|grow\w*|shrink\w*"
    r"|why|wtf|how(?=\W*$)|need\w*|enough|fits?|go(?:es)? (?:up|down)|ris(?:es?|ing)|worse|better)\b",
    re.I,
)
_OF_OTHER_KINDS = {Topic.PRINCIPLE, Topic.TERM, Topic.WHY_NOT, Topic.MAXTEXT, Topic.SHARDING, Topic.XLA_FLAGS}
"""Topics of a question in which the name of a figure asks for no figure."""


@dataclass(frozen=True)
class Figure:
    """A figure of a plan.

    Args:
        words: by which a question names it.
        title: in a sentence.
        say: the figure of a prediction; ``None`` where it is not predicted.
        means: what it is made of, or what changes it.
    """

    words: re.Pattern[str]
    title: str
    say: Callable[[Prediction], str | None]
    means: str


def figures_named(question: Question) -> list[Figure]:
    """The figures that a question asks for by name."""
    if question.topic in _OF_OTHER_KINDS or not _QUANTITY.search(question.text):
        return []
    if asks_why(question.text) and not question.change.empty:
        return []
    return [figure for figure in _FIGURES if figure.words.search(question.text)]


def say_figures(conversation: Conversation, answer: ReplyBuilder, question: Question, figures: list[Figure]) -> None:
    """The figures of the plans in question, after the change in question; raises InsufficientEvidenceError."""
    for name, prediction in subjects(conversation, question):
        for figure in figures:
            said = figure.say(prediction)
            if said is None:
                say_unknown(conversation, answer, figure.title, name)
            else:
                answer.add(f"{figure.title} of {name}: {said}.")
        beside = prediction.plan != conversation.study.plan and prediction.step_time is not None
        answer.add(*([f"- beside that: {expectation(prediction)}"] if beside else []))
        answer.add_figure(f"{prediction.plan}: step time", prediction.step_time)
        answer.focus = prediction.plan
    answer.add(*(f"- {figure.title}: {figure.means}." for figure in figures))


def _time(*names: str) -> Callable[[Prediction], str | None]:
    """Seconds and share of the step that parts of it add."""

    def say(prediction: Prediction) -> str | None:
        if not prediction.parts or prediction.step_time is None:
            return None
        step = prediction.step_time
        exposed = sum(part.exposed_s for part in prediction.parts if part.name in names)
        share = format_percent(exposed / step.value)
        return f"{format_seconds(exposed)} of a step of {format_seconds(step.value)}, {share} (modelled)"

    return say


def _host_memory(prediction: Prediction) -> str | None:
    held = prediction.memory
    if held is None:
        return None
    room = held.host_capacity_bytes
    said = f"{format_bytes(held.host_bytes)} for each chip" if held.host_bytes else "none, as nothing is offloaded"
    return f"{said} (modelled{f'; a chip can have {format_bytes(room)}' if room else '; its size is not known'})"


_FIGURES = (
    Figure(
        re.compile(r"\bbubbles?\b", re.I),
        "pipeline bubble",
        _time("pipeline bubble"),
        "stages wait while a step fills and drains the pipeline; more microbatches or virtual stages make it smaller",
    ),
    Figure(
        re.compile(
            r"\b(?:host|cpu|node|system|main) (?:ram|memory|dram|mem)\b|\b(?:ram|dram)\b(?=.*\b(?:host|node|cpu)s?\b)"
            r"|\b(?:memory (?:on|of)|(?:keep|keeps|kept|lies|held|put|go|goes) (?:on|in|to|into))"
            r" (?:the |each )?hosts?\b",
            re.I,
        ),
        "host memory",
        _host_memory,
        "what is offloaded waits there; the input pipeline and the operating system come on top",
    ),
    Figure(
        re.compile(
            r"\bhost\b(?! (?:ram|memory|dram|offload\w*|transfers?)\b)(?=.*(?:%|\bpercent|\btime|\bshare|\bcost|\bpart"
            r"|\boverhead|\btak|\bmade))|(?<=%) (?:of )?(?:the )?host\b(?! (?:ram|memory|dram|offload\w*|transfers?)\b)"
            r"|\b(?:launch|kernel launch|dispatch|python|cpu) (?:overhead|time|cost)s?\b"
            r"|\bkernel launch\w*",
            re.I,
        ),
        "host time",
        _time("host"),
        "the host starts the kernels of every layer in every microbatch; fewer, larger microbatches need less of it",
    ),
    Figure(
        re.compile(
            r"\bhost transfers?\b|\b(?:offload|host|pci-?e)\w*\b[^?]*\b(?:bw|bandwidth|link)\b|\bpci-?e\b|\bc2c\b"
            r"|\b(?:copy|copies|copying|transfers?|traffic) (?:to|from|over|with)"
            r" (?:the )?(?:host|cpu)\b",
            re.I,
        ),
        "host transfers",
        _time("host transfers"),
        "what is offloaded is copied over the link to the host and back, and only what nothing hides counts here",
    ),
    Figure(
        re.compile(r"\boptimi[sz]er(?:'s)? (?:step|update|time)\b|\bweight update\b", re.I),
        "optimizer update",
        _time("optimizer"),
        "every parameter and its state is read and written once a step",
    ),
    Figure(
        re.compile(r"\b(?:hbm|memory) (?:traffic|bandwidth|time|reads?)\b", re.I),
        "HBM traffic",
        _time("hbm"),
        "time in which kernels wait for HBM and not for arithmetic",
    ),
)
