"""Figures of a run with another workload, other hardware or a switch that no plan has: "on 64 gpus we got 1.9 s"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.already_so import real_change, without_what_is_so
from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.amounts import amounts as amounts_of
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import change_in
from asap.chat.understanding.quantities.hardware.machines import counted_in_chips
from asap.chat.understanding.quantities.things import Thing
from asap.chat.understanding.references.references import References
from asap.chat.understanding.statements.conditions import COUNTS, reports
from asap.chat.understanding.words.settings.unmodelled import unmodelled_in
from asap.core.text import plain
from asap.plans.axes import WORDS, Axis
from asap.plans.prose import plan_spans
from asap.study.study import Study

_SIZES = {"chips", "nodes", "slices", "sequences", "sequences/chip", "layers", "experts", "tokens"}
_UNDER = r"(?:with|at|on|using|under|for|in|across|over)"
_UNDER_AXIS = re.compile(
    r"\b(?:with|using|under|on|in)\s+(?:\w+ )?(?P<axis>hsdp|fsdp|tp|pp|cp|ep)(?![\w=-]|\s*=?\s*\d)", re.I
)
_SINGLE = re.compile(r"\b(?:one|a single)(?= (?:nodes?|hosts?|[gt]pus?|chips?|devices?|slices?|pods?)\b)", re.I)
_OF_THE_RUN: dict[Thing, str] = {
    "batch": r"batch\w*|gbs|bs|sequences|seqs", "per_device_batch": r"batch\w*|gbs|bs|sequences|seqs|per[- ]\w+",
    "local_batch": r"local\w*|lbs", "sequence": r"seq\w*|context|length|tokens|\d+ ?k",
    "chips": r"chips?|[gt]pus?|devices?|nodes?|hosts?|cores?|machines?|of them", "slices": r"slices?|pods?",
    "layers": r"layers|blocks|depth", "experts": r"experts?",
}  # fmt: skip
_NAMES: dict[Thing, str] = {
    "batch": "global batch", "per_device_batch": "batch per device", "local_batch": "local batch",
    "sequence": "sequence length", "chips": "number of chips", "slices": "number of slices",
    "layers": "number of layers", "experts": "number of experts",
}  # fmt: skip


def of_another_run(text: str, amounts: Sequence[Amount], study: Study) -> str | None:
    """Why the figure of a report is not of this run; ``None`` if it may be.

    A batch or a length that is stated by itself ("our batch is 64") is one of this run; one under which something was
    measured ("with batch 64 it took 1.9 s") is none, where the record has another.
    """
    if not reports(text, amounts):
        return None
    if (technique := unmodelled_in(text)) is not None:
        return _refusal(text, technique)
    bare = _SINGLE.sub("1", blanked(text, [(start, end) for start, end, _ in plan_spans(text)]))
    found = amounts_of(bare) if _SINGLE.search(text) else amounts
    counted = [one for one in counted_in_chips(bare, found, study.slice) if one.unit in COUNTS | _SIZES]
    change, _ = change_in(bare, counted)
    change = without_what_is_so(real_change(change, study), study)
    workload = study.experiment.workload
    if change.precision is not None and change.precision != workload.precision:
        return _refusal(text, change.precision)
    for thing, _ in change.counts:
        if _is_condition(thing, bare) and _is_known(thing, study):
            return _refusal(text, f"another {_NAMES[thing]}")
    return None


def under_unnamed_degrees(text: str, amounts: Sequence[Amount], refs: References, study: Study) -> str | None:
    """Asks for the plan of a report under an axis that the run does not have, no degree named: "with hsdp 2.6 s"."""
    if refs.plans or study.plan is None or not reports(text, amounts):
        return None
    found = _UNDER_AXIS.search(text)
    if found is None:
        return None
    hybrid = found["axis"].lower() == "hsdp"
    axes: tuple[Axis, ...] = ("replica", "data") if hybrid else (WORDS[found["axis"].lower()],)
    if all(study.plan.degree(axis) > 1 for axis in axes):
        return None
    return f'Which plan is that? "{plain(found[0], 40)}" names no degrees: say it as in "data=16 model=4 took 2.4 s".'


def _is_condition(thing: Thing, text: str) -> bool:
    """Whether it stands behind a preposition, and not as what is stated."""
    words = _OF_THE_RUN.get(thing)
    if words is None:
        return False
    number = r"\d[\d.,]*\s?k?\s*"
    under = (
        rf"\b{_UNDER}\s+(?:(?:a|an|the|only|just|global)\s+)*(?:{number})?(?:{words})\b|\band\s+{number}(?:{words})\b"
    )
    return re.search(under, text, re.I) is not None


def _is_known(thing: Thing, study: Study) -> bool:
    """Whether the record has it, so that another one is of another run."""
    workload, model = study.experiment.workload, study.experiment.model
    if thing in {"chips", "slices"}:
        return study.slice is not None
    if thing in {"layers", "experts"}:
        return model is not None
    return (workload.sequence_length if thing == "sequence" else workload.global_batch) is not None


def _refusal(text: str, what: str) -> str:
    return (
        f'Not recorded: "{plain(text, 80)}" is of a run with {what}, and the record is of this one. To set it beside a'
        " prediction, ask what if, with that."
    )
