"""Which axes of a plan stay inside a node of GPUs, or inside a slice of TPUs."""

import re

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.evidence.node_span import INNERMOST, leaves_node, reach
from asap.hardware.chip import Chip
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis

_PLACE = re.compile(
    r"\b(?:inside|within|with-?in|in|to|on|across|cross\w*|leav\w+|span\w*|over|between|fits?)\s+(?:just\s+|only\s+)?"
    r"(?:(?:one|a|an|the|each|its|single|same|several|two|more)\s+){0,2}"
    r"(?:nodes?|servers?|hosts?|machines?|box(?:es)?|nvlink(?: domain)?|nvswitch|island|slice|pod)\b"
    r"|\b(?:intra|inter|cross)[- ]?node\b"
    r"|\b(?:on|over|via|through|across|us(?:e|es|ing))\s+(?:the\s+)?(?:ib|infiniband|roce|nvlink|ici|dcn|scale-?(?:out|up))\b"
    r"|\b(?:on|onto|to|along|over|around|across|in)\s+(?:(?:an?|the|each|its|single|same|other|another|one|two|both|ici|long"
    r"|short|x|y|z)\s+){0,3}(?:rings?|torus|tori|dim\w*|wraparound|physical axis)\b",
    re.I,
)
_AXIS = re.compile(
    r"\b(?:(?:tp|pp|cp|ep|dp|fsdp)\d*|tensor|pipeline|context|expert|data)\b|\b(?:model|seq\w*) (?:axis|parallel\w*)"
    r"|\ball-to-all\b|\ball-?reduc\w*|\ball-?gather\w*|\baxis\b|\baxes\b",
    re.I,
)


def asks_placement(question: Question) -> bool:
    """Whether it asks if an axis stays inside a node: "keep tp inside the node?"."""
    place = _PLACE.search(question.text) is not None and _AXIS.search(question.text) is not None
    return place and question.change.network is None and question.change.network_factor is None


def placement(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Where each axis lies, of the plans that are named, else of what runs now and of the first proposal.

    Raises:
        InsufficientEvidenceError: the hardware or the plan is not known.
    """
    study = conversation.study
    plans, chip = plans_on_chip(conversation, question)
    answer.complete = True
    for plan in plans:
        name = "what runs now, " if plan == study.plan else ""
        answer.add(f"{name}{plan}: {_places(plan, chip)}.")
    answer.add(
        f"A node of {chip.title} has {chip.scaleup.domain} of them on its fast links; ranks are numbered from"
        f" {INNERMOST[0]} outwards ({', '.join(INNERMOST)}), and predictions take each axis where that puts it."
        if chip.scaleup is not None
        else "All chips of a slice are joined by ICI, whatever host they belong to: hosts bound no axis. Only what is"
        " written as dcn.… goes between slices. Which rings of the torus an axis takes the launcher chooses from the"
        " degrees: no lever here moves it, so I cannot say what a swap brings."
    )
    answer.focus = plans[0]


def plans_on_chip(conversation: Conversation, question: Question) -> tuple[list[Plan], Chip]:
    """The plans that are named, else what runs now and the first proposal, and the chip that they lie on.

    Raises:
        InsufficientEvidenceError: the hardware or the plan is not known.
    """
    study = conversation.study
    named = [whole(conversation, plan) for plan in question.plans] or [study.plan, *conversation.order[:1]]
    plans = list(dict.fromkeys(plan for plan in named if plan is not None))
    if study.slice is None or not plans:
        raise InsufficientEvidenceError("hardware and plan are not both on record", where=conversation.id)
    return plans, study.slice.chip


def crosses_nodes(plan: Plan, axis: Axis, chip: Chip) -> bool:
    """Whether an axis of a plan goes over the network between nodes or slices."""
    return leaves_node(plan, axis, chip.scaleup.domain if chip.scaleup is not None else None)


def _places(plan: Plan, chip: Chip) -> str:
    """Each axis with where it lies."""
    if chip.scaleup is None:
        between = [f"{axis}={degree}" for axis in INNERMOST if (degree := getattr(plan.dcn, axis)) > 1]
        return f"{' and '.join(between)} between slices" if between else "every axis inside a slice"
    found = []
    for axis in INNERMOST:
        if (degree := plan.degree(axis)) > 1:
            found.append(f"{axis}={degree} ({MEANINGS[axis]}) {reach(plan, axis, chip.scaleup.domain)}")
    return ", ".join(found) or "one device"
