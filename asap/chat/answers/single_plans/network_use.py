"""Whether a link is used at all: "is dcn involved", "do we go over ib", "does anything touch nvlink"."""

import re

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.placement import crosses_nodes, plans_on_chip
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent
from asap.hardware.chip import Chip
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis

_OUTER = (
    r"(?:dcn|ib|infiniband|roce|efa|ethernet|(?:inter|cross)-?(?:node|slice|pod|host)\b"
    r"|(?:the )?(?:network|fabric|interconnect|scale-?out|data ?cent(?:er|re) network)"
    r"|between (?:the |our )?(?:nodes|slices|pods|hosts))"
)
_INNER = r"(?:nvlink|nvswitch|ici|(?:intra)-?(?:node|slice)\b|scale-?up)"
_USED = (
    r"(?:involved|used?|using|in (?:use|play|the (?:picture|loop|path))|touch\w*|hit\w*|cross\w*|relevant|matter\w*"
    r"|(?:go(?:es|ing)?|run(?:s|ning)?) (?:over|through|via|across)|rely|depend\w*|need\w*|at all"
    r"|do(?:es|ing)? anything|part of)"
)
_ASKED = re.compile(
    r"^\W*(?:(?:and|so|but|ok)\W+)*(?:is|are|do|does|will|would|any(?:thing)?)\b"
    rf"(?=[^?]*\b(?:{_OUTER}|{_INNER}))(?=[^?]*\b{_USED}\b)",
    re.I,
)
_NAMES_AXIS = re.compile(r"\b(?:tp|pp|cp|ep|dp|fsdp|tensor|pipeline|expert|context|all-\w+)\b", re.I)
_LONGEST = 9


def asks_network_use(question: Question) -> bool:
    """Whether it asks if traffic goes over a kind of link; of one axis it asks where that lies."""
    text = question.text
    short = len(text.split()) <= _LONGEST and question.change.empty and not question.unused
    return short and _ASKED.search(text) is not None and not _NAMES_AXIS.search(text)


def network_use(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Yes or no for the plan that is named, else for what runs now and the first proposal, with the axes.

    Raises:
        InsufficientEvidenceError: the hardware or the plan is not known.
    """
    plans, chip = plans_on_chip(conversation, question)
    outside = re.search(_OUTER, question.text, re.I) is not None
    answer.complete, answer.focus = True, plans[0]
    for place, plan in enumerate(plans):
        said = _uses(conversation, plan, chip, outside=outside)
        name = "what runs now" if plan == conversation.study.plan else str(plan)
        answer.add(f"{said[0]}: {name} {said[1]}." if place == 0 else f"{name}: {said[0].lower()}, it {said[1]}.")


def _uses(conversation: Conversation, plan: Plan, chip: Chip, *, outside: bool) -> tuple[str, str]:
    """Yes or no, and what goes over the link."""
    gpus = chip.scaleup is not None
    axes: list[Axis] = [
        axis for axis in MEANINGS if plan.degree(axis) > 1 and crosses_nodes(plan, axis, chip) == outside
    ]
    if outside:
        link = "over the network between nodes" if gpus else "over DCN, between slices"
        none = "keeps every axis inside a node" if gpus else "keeps every axis inside a slice"
    else:
        link = "inside a node alone" if gpus else "over ICI, inside a slice"
        none = "has no axis that stays inside a node" if gpus else "has no axis inside a slice"
    if not axes:
        return "No", none
    named = " and ".join(f"{MEANINGS[axis]} ({axis}={plan.degree(axis)})" for axis in axes)
    return "Yes", f"has {named} {link}{_share(conversation, plan, set(axes))}"


def _share(conversation: Conversation, plan: Plan, axes: set[str]) -> str:
    """The share of the step that nothing hides of their collectives."""
    prediction = prediction_of(conversation, plan)
    parts = [part.exposed_s for part in prediction.parts if part.axis in axes]
    if not parts or prediction.step_time is None:
        return ""
    return f"; that adds {format_percent(sum(parts) / prediction.step_time.value)} to the step (modelled)"
