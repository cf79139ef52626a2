"""Whether a resource is what the step waits for: "it can't be compute", "could be the network"."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.placement import crosses_nodes
from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import asks_how_to_tell
from asap.chat.understanding.words.worth import axes_in_short
from asap.core.errors import AsapError
from asap.core.units import format_percent, format_rate, format_seconds
from asap.diagnosis.diagnosis import Bottleneck
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.prediction.prediction import TimePart

_WE_DO = r"(?:should|shall|do) (?:i|we) (?:need to |have to )?"
_SUSPICION = re.compile(
    r"\b(?:can(?:'?t|not)|couldn't|must|has to|have to|could|might|may|gotta) (?:well |just |only |really )?be\b"
    r"|\b(?:sure|certain|positive|really|definitely|truly)\b[^.?!]*\b(?:is|are|it'?s|that'?s|thats|its|from|the)\b"
    r"|\b(?:so|then|is|isn't|are|aren't|was) (?:it|that|this|they)(?:'s| is| are)? (?:just |only |really |all )?"
    r"(?:the|because|due|down)\b"
    r"|^\W*(?:so|then|no|nah|nope|but)?\W*(?:it|that|this)(?: is|'s) (?:just |all )?the\b"
    r"|^\W*(?:so|then) (?:it|that|this)(?: is|'s)"
    r"|\b(?:can|could|might|may) (?:the )?[\w-]+(?: [\w-]+)? be (?:the|what|at|our|it)\b"
    rf"|\b{_WE_DO}(?:look at|worry about|fix|tune|optimi[sz]e|attack|go after|focus on)\b"
    r"|\b(?:is|are|was|isn't|aren't) (?:the |our )?[\w-]+(?: [\w-]+)? (?:the|a|our) (?:\w+ )?(?:problem|bottleneck"
    r"|culprit|issue|reason|limit\w*)\b"
    r"|\b(?:is|are|was|were)\b[^.?!]*\b(?:because of|due to|caused by|down to)\b"
    r"|\b(?:crawl\w*|sluggish|choking|starv\w*|saturat\w*|the reason|at fault|responsible|to blame)\b",
    re.I,
)
"""Suspects something, or doubts that it is at fault."""
_NOISE = re.compile(
    r"\b(?:noise|noisy|chance|jitter|variance|fluke|artefact|artifact|coincidence|sure|certain|really)\b", re.I
)
_AXIS_WORDS = re.compile(r"\b(?P<axis>model|data|seq|expert|stage|replica)(?= (?:axis|parallel\w*|dim\w*))", re.I)
_Is = Callable[[Plan, TimePart, Conversation], bool]


@dataclass(frozen=True)
class Suspect:
    """A resource, the words for it, the finding of a profile on it, and the parts of a predicted step that it is."""

    words: re.Pattern[str]
    title: str
    kind: Bottleneck
    has: _Is


def _suspect(words: str, title: str, kind: Bottleneck, has: _Is) -> Suspect:
    return Suspect(re.compile(rf"\b(?:{words})\b", re.I), title, kind, has)


def _named(*names: str) -> _Is:
    return lambda plan, part, conversation: part.name in names


def _between_nodes(plan: Plan, part: TimePart, conversation: Conversation) -> bool:
    hardware = conversation.study.slice
    axis = next((axis for axis in get_args(Axis) if axis == part.axis), None)
    return hardware is not None and axis is not None and crosses_nodes(plan, axis, hardware.chip)


_SUSPECTS = (
    _suspect(
        r"networks?|efa|ib|infiniband|roce|fabric|dcn|nics?|ethernet|between (?:the )?nodes|inter-?node|cross-?node",
        "the network between nodes", Bottleneck.COMMUNICATION, _between_nodes,
    ),
    _suspect(
        r"custom[- ](?:kernels?|calls?|ops?)|pallas|opaque|our kernels?", "custom kernels", Bottleneck.OPAQUE,
        lambda plan, part, conversation: False,
    ),
    _suspect(
        r"communicat\w+|collectives?|ici|nvlinks?|links?|interconnect|nccl|all-\w+|all (?:reduc\w+|gather\w*|to all)"
        r"|reduce[- ]scatter", "communication",
        Bottleneck.COMMUNICATION,
        lambda plan, part, conversation: part.axis is not None,
    ),
    _suspect(r"hbm|memory[- ](?:bandwidth|bw|bound)", "HBM traffic", Bottleneck.HBM, _named("hbm", "optimizer")),
    _suspect(r"host|cpu|launch\w*|python|dispatch", "the host", Bottleneck.HOST, _named("host")),
    _suspect(r"bubbles?", "the pipeline bubble", Bottleneck.IDLE, _named("pipeline bubble")),
    _suspect(r"compute|flops?|matmuls?|gemms?|tensor cores?|mxu", "compute", Bottleneck.COMPUTE, _named("compute")),
)  # fmt: skip


def resource_named(text: str) -> Suspect | None:
    """The first resource of the table that a text names."""
    return next((suspect for suspect in _SUSPECTS if suspect.words.search(text)), None)


def suspects_in(question: Question) -> list[Suspect]:
    """The resources and axes that a message suspects; empty where it suspects none."""
    text = question.text
    if (
        not _SUSPICION.search(text)
        or asks_how_to_tell(text)
        or question.refs.ranked
        or question.refs.written
        or not question.change.empty
    ):
        return []
    axes = [*axes_in_short(text), *(found["axis"].lower() for found in _AXIS_WORDS.finditer(text))]
    of_axes = [
        Suspect(_SUSPICION, f"the {axis} axis", Bottleneck.COMMUNICATION, _of_axis(axis))
        for axis in dict.fromkeys(axes)
    ]
    return of_axes or [suspect for suspect in _SUSPECTS if suspect.words.search(text)][:1]


def _of_axis(axis: str) -> _Is:
    return lambda plan, part, conversation: part.axis == axis


def suspected(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """How much of the step each of them is, what is most of it, and how that is known."""
    study = conversation.study
    named, parts = suspects_in(question), predicted_parts(conversation)
    findings = study.diagnosis.findings
    answer.complete = True
    for suspect in named:
        of = [part for part in parts if study.plan is not None and suspect.has(study.plan, part, conversation)]
        seen = [one for one in findings if one.kind is suspect.kind]
        if of:
            step = sum(part.exposed_s for part in parts)
            most = max(parts, key=lambda part: part.exposed_s)
            share = sum(part.exposed_s for part in of)
            title = f"{suspect.title[0].upper()}{suspect.title[1:]}"
            answer.add(
                f"{title} is {'' if most in of else 'not '}the largest part of the step:"
                f" {format_seconds(share)} of {format_seconds(step)}, {format_percent(share / step)} (modelled)."
            )
        elif seen:
            answer.add(*(one.statement for one in seen))
            answer.add(*(f"Next: {one.advice}." for one in seen if one.advice))
        elif parts and suspect.kind is not Bottleneck.OPAQUE:
            answer.add(f"By the model no part of the step is {suspect.title}.")
        elif suspect.kind is Bottleneck.COMMUNICATION and (share := _communication(conversation)) is not None:
            part = "" if suspect.title == "communication" else f"; {suspect.title} is a part of that"
            answer.add(f"Communication takes {format_percent(share)} of the time by the KPIs{part}.")
        else:
            answer.add(f"Nothing on record says how much of the step {suspect.title} is.")
        if suspect.title.startswith("the network") and study.slice is not None:
            _network(conversation, answer)
    if _NOISE.search(question.text):
        answer.add(_how_known(conversation))
    bottleneck(conversation, answer, replace(question, plans=()))


def _communication(conversation: Conversation) -> float | None:
    """The share of the time in collectives, as a profile shows it."""
    profile = conversation.study.profile
    return profile.kpis.communication if profile is not None else None


def predicted_parts(conversation: Conversation) -> tuple[TimePart, ...]:
    """The predicted step of what runs now, where no profile shows it."""
    study = conversation.study
    if study.plan is None or (study.profile is not None and study.profile.operations):
        return ()
    try:
        return prediction_of(conversation, study.plan).parts
    except AsapError:
        return ()


def _how_known(conversation: Conversation) -> str:
    """Whether it was seen, or computed."""
    profile = conversation.study.profile
    if profile is not None and profile.operations:
        return (
            "That is read off a profile, as shares of the operations that it lists; it does not record which mesh axis"
            " a collective belongs to."
        )
    return (
        "That is computed, so there is no noise of steps in it, but the model may err: the bytes that an axis moves"
        " follow from the plan, and the rate of the links is on record. A profile would show it measured."
    )


def _network(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The rate that is taken, which the engineer may know better."""
    hardware = conversation.study.slice
    if hardware is None:
        return
    network = hardware.chip.network
    kind = "as stated" if network.stated else "as its maker has it"
    answer.add(
        f"That takes {format_rate(network.bandwidth, 'B/s')} of each {'GPU' if hardware.chip.kind == 'gpu' else 'chip'}"
        f' into the network, {kind}. If yours is slower, ask with its rate: "what if the network is 8x200Gb".'
    )
