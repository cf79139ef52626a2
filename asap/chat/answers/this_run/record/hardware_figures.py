"""Which figure of the hardware predictions take, from where, and whether one that is named agrees with it."""

import re

from asap.chat.answers.this_run.record.hardware_parts import PARTS, HardwarePart
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent, format_rate
from asap.hardware import Slice
from asap.prediction.step_model.groups import Groups
from asap.prediction.uncertainty.calibration import load_calibration

_NEAR = 0.06
"""Share by which a figure that is named may be rounded, or count GB as GiB."""
_SCALES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_RATE = re.compile(
    r"(?<![\w.])(?P<number>\d{1,5}(?:\.\d+)?)\s*(?P<scale>[KMGTkmgt])(?:i)?(?P<unit>[bB])(?:it|yte)?s?"
    r"(?:ps\b|\s*/\s*s(?:ec)?\b|\s+per\s+sec\w*|\b)",
)
_FLOPS = re.compile(
    r"(?<![\w.])(?P<number>\d{1,5}(?:\.\d+)?)\s*(?P<scale>[TtPp])(?:era|eta)?[- ]?flop(?:s|/s)?\b", re.I
)
_ASKS = re.compile(
    r"\b(?:what|which|how (?:much|many|fast)|where)\b[^.?!]*\b(?:assum\w*|us(?:e|es|ed|ing)|tak(?:e|es|en|ing)|count\w*"
    r"|have|reckon\w*|bas(?:ed|is)|from)\b"
    r"|\b(?:do|did|are|have) you\b[^.?!]*\b(?:us(?:e|ed|ing)|assum\w*|count\w*|account\w*)\b"
    r"|\b(?:max(?:imum)?|peak|rated|nominal|data ?sheet) (?:\w+ )?(?:[tp]?[- ]?flops?\b|bandwidth|bw\b)"
    r"|\b(?:your|assumed) (?:\w+ ){0,2}(?:figure|number|rate|bandwidth|peak)s?\b",
    re.I,
)
_ASSUMED = re.compile(r"\b(?:assum\w*|count\w* on|(?:you|did you|do you) (?:use|take))\b", re.I)
_OF_A_NODE = re.compile(r"\b(?:per|a|each|of the) (?:node|host|server)\b|/ ?node\b", re.I)
_REACHED = re.compile(
    r"\b(?:we|our|us|i|my|logs?|dashboard|grafana|mlflow|wandb|tensorboard|console|monitor\w*|measured?|reach\w*|get(?:s|ting)?|got)\b",
    re.I,
)
"""Words of a rate that a run reaches, which is none of the hardware."""
_RATED = re.compile(r"\b(?:peak|rated|nominal|specs?|spec sheet|data ?sheets?|theoretical)\b", re.I)
_SUPPOSES = re.compile(r"\b(?:what if|if|suppose|imagine|were|would|upgrade\w*|instead)\b", re.I)


def hardware_figure_asked(conversation: Conversation, question: Question) -> HardwarePart | None:
    """The part of the hardware whose figure is asked for, or doubted by another one; ``None`` without either."""
    hardware, text = conversation.study.slice, question.text
    if _FLOPS.search(text) and _REACHED.search(text) and not (_ASKS.search(text) or _RATED.search(text)):
        return None
    if hardware is None or _SUPPOSES.search(text) or question.refs.ranked or _says_of_what(question):
        return None
    part = next((part for part in PARTS if part.words.search(text)), None)
    if part is None and _ASSUMED.search(text):
        part = next((one for one in PARTS if _follows(one, hardware, text)), None)
    if part is None:
        return None
    said = _said(part, text)
    return part if said is not None or _ASKS.search(text) else None


def hardware_figure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is taken, its source, and what a figure that is named is of; raises InsufficientEvidenceError."""
    part, hardware = hardware_figure_asked(conversation, question), conversation.study.slice
    if part is None or hardware is None:
        return
    answer.complete = True
    known, chip = part.figures(hardware), hardware.chip
    title, field = part.title or _link_name(hardware), part.source or _link_field(hardware)
    if not known:
        raise InsufficientEvidenceError(f"{title} of {chip.title} is not on record", where=conversation.id)
    taken, of = known[0]
    network = part.source == "network.bandwidth"
    origin = "as it was stated" if network and chip.network.stated else chip.source(field) or "its maker"
    answer.add(f"Predictions take {format_rate(taken, part.unit)} for {title} of {chip.title}, {of} ({origin}).")
    said = _said(part, question.text)
    if said is not None:
        meant = [what for rate, what in known if abs(said - rate) <= _NEAR * rate]
        named = format_rate(said, part.unit)
        if of in meant:
            answer.add(f"{named} is that figure.")
        elif meant:
            answer.add(f"{named} agrees with it: that is {' or '.join(meant)}.")
        else:
            others = ", ".join(f"{format_rate(rate, part.unit)} {what}" for rate, what in known)
            answer.add(
                f"{named} is none of those that follow from it: {others}. Was it measured, or is it of another machine?"
            )
    if part.sustained:
        groups = Groups.of(hardware, conversation.study.experiment.workload)
        share = getattr(load_calibration().full.resolve_one(groups), part.sustained)
        counted = f"{format_rate(share * taken, part.unit)} {of}"
        node = next((rate for rate, what in known if "node" in what), None)
        if node is not None and _OF_A_NODE.search(question.text):
            counted += f", {format_rate(share * node, part.unit)} of a node"
        answer.add(f"They count on the {format_percent(share, 0)} of it that published runs sustain: {counted}.")
    if network and question.change.network is not None:
        answer.add(
            "To evaluate the run with it, say whether it is of a node, or of one GPU: 8x400Gb, 3200Gb/node, 400Gb/gpu."
        )
    elif network:
        answer.add('If yours is another one, ask with it: "what if the network is 8x200Gb", or record it: --network.')


def _follows(part: HardwarePart, hardware: Slice, text: str) -> bool:
    """Whether a figure of a text is one of the part's."""
    said = _said(part, text)
    return said is not None and any(abs(said - rate) <= _NEAR * rate for rate, _ in part.figures(hardware))


def _says_of_what(question: Question) -> bool:
    """Whether it names another network in full, which is evaluated."""
    change = question.change
    return bool(change.network_factor) or (
        change.network is not None and re.search(r"/(?!s)|x", change.network) is not None
    )


def _said(part: HardwarePart, text: str) -> float | None:
    """The figure that a text names, in the unit of the part."""
    found = (_FLOPS if part.unit == "FLOP/s" else _RATE).search(text)
    if found is None:
        return None
    bits = part.unit == "B/s" and found["unit"] == "b"
    return float(found["number"]) * _SCALES[found["scale"].lower()] / (8 if bits else 1)


def _link_name(hardware: Slice) -> str:
    if hardware.chip.torus is not None:
        return "ICI"
    return "NVLink" if hardware.chip.title.startswith("NVIDIA") else "the fast links"


def _link_field(hardware: Slice) -> str:
    return "torus.link_bandwidth" if hardware.chip.torus is not None else "scaleup.bandwidth"
