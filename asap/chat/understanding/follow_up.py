"""A question that goes on with the one before: "and with no remat?" after "what about tp=8?"."""

import re
from dataclasses import replace

from asap.chat.understanding.quantities.changes import Change, with_earlier
from asap.chat.understanding.references.partial_plan import filled
from asap.chat.understanding.topics.topics import Topic
from asap.plans import Plan
from asap.plans.plan import SETTINGS
from asap.plans.validity import violations
from asap.study.study import Study

CHANGED = {
    Topic.WHAT_IF, Topic.WHY_NOT, Topic.UNKNOWN, Topic.MEMORY, Topic.THROUGHPUT, Topic.RUN, Topic.REPORTED,
    Topic.FITTING, Topic.WORTH_IT, Topic.LARGEST, Topic.EXPLAIN, Topic.COMPARE, Topic.AFTERWARDS,
    Topic.SEQUENCE_PARALLEL,
}  # fmt: skip
"""Topics, before or now, that are of a change or a plan."""
_AND = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|well|so|yeah|yes|right|now|then|but|h+m+|u[hm]+|a+h+)\b\W*)*"
    r"(?:and|also|plus|then|same(?: thing)?(?=,? but\b)|add(?:ing)?)\b"
    r"(?!\s+(?:(?:what|how) about|what|how|why|who|which|if|is|are|does|do|would|could|for)\b)",
    re.I,
)
"""The start of what comes on top; "and what if" asks for something else instead."""
_FRAGMENT = re.compile(r"^\W*(?:(?:ok(?:ay)?|so|h+m+|now)\W+)*(?:with(?:out)?|using|at)\s+\S+(?:\s+\S+){0,4}\W*$", re.I)
"""No sentence of its own: "with cp2?"."""
_ON_TOP = re.compile(
    r"\b(?:(?:there|for (?:that|it|this)|with (?:that|it|this))(?=\W*$)|in that case|on top|as well"
    r"|too(?=\W*(?:$|[,.?!;]))|also|in addition|additionally"
    r"|besides|at the same time"
    r"|together with (?:it|that))\b",
    re.I,
)


def goes_on(text: str) -> bool:
    """Whether what a text changes comes on top of what was asked before."""
    return any(words.search(text) for words in (_AND, _ON_TOP, _FRAGMENT))


_WITH_CHIPS = re.compile(
    r"\bbatch\w*\s+(?:that\s+)?(?:grow|scal|increas|go)\w*\s+(?:up\s+)?(?:with|along|too|as well|accordingly"
    r"|in proportion|proportional\w*)"
    r"|\b(?:scal|grow|increas)\w* (?:the |our )?batch\w*\s+(?:too|as well|along|with (?:it|that|them)|accordingly"
    r"|in proportion|proportional\w*)"
    r"|\b(?:same|constant|fixed) batch per (?:gpu|chip|device)|\bweak[- ]scal\w+",
    re.I,
)
"""Says that the batch follows the number of chips that was spoken of."""


def with_batch_of_chips(text: str, change: Change, earlier: Change | None) -> Change:
    """The change with the chips of before, where it lets the batch follow them: "and if batch grows with it"."""
    if earlier is None or not _WITH_CHIPS.search(text) or not (earlier.get("chips") or earlier.hardware):
        return change
    if change.get("chips") or change.hardware:
        return change
    kept = tuple(pair for pair in change.counts if pair[0] != "batch" or not pair[1].example)
    return with_earlier(change.model_copy(update={"counts": kept, "same_local_batch": True}), earlier)


def change_on_top(change: Change, earlier: Change | None) -> Change:
    """A change with the one before it."""
    return change if earlier is None else with_earlier(change, earlier)


def completes(change: Change, earlier: Change | None) -> bool:
    """Whether it names a model or chips, and the change before it the other, so that both are meant."""
    if earlier is None or (change.model is not None) == _names_chips(change):
        return False
    return _names_chips(earlier) if change.model is not None else earlier.model is not None


def _names_chips(change: Change) -> bool:
    return bool(change.hardware or change.get("chips") or change.get("slices"))


def plan_on_top(study: Study, earlier: Plan, later: Plan) -> Plan:
    """The degrees that are named now, in the plan that was spoken of before; of its settings, what it stated itself."""
    base = study.complete(filled(study, earlier))
    there = replace(study, experiment=study.experiment.model_copy(update={"plan": base}))
    stated = [name for name in SETTINGS if name != "microbatches" and name in earlier.model_fields_set]
    kept = {name: getattr(earlier, name) for name in stated if name not in later.model_fields_set}
    plan = filled(there, later).model_copy(update=kept)
    if earlier.microbatches is None or "microbatches" in later.model_fields_set:
        return plan
    whole = there.complete(plan)
    return plan if violations(whole, study.constraints) else whole
