"""A change without what the run has already: "at 8k", "all 16 chips" of 16."""

import re

from asap.chat.understanding.quantities.changes import PRECISION, Change
from asap.chat.understanding.quantities.model_names import other_model
from asap.chat.understanding.quantities.not_wanted import is_dropped
from asap.study.study import Study

_SIZES = {"chips", "slices"}
_OF_MODEL = ("layers", "experts", "experts_per_token", "kv_heads", "vocab", "d_model")
_ALREADY = re.compile(r"\balready\b", re.I)
_SWITCHES = re.compile(r"\b(?:what if|if|use|using|switch\w*|with|train\w*|go(?:ing)? (?:to|back))\b", re.I)
"""Words with which even the optimizer of now is a change: "what if we used adamw"."""


def without_dropped(change: Change, text: str) -> Change:
    """A change spoken of before, without the precision that a line takes back: "no fp8 then"."""
    dropped = any(is_dropped(text[: match.start()]) for match in PRECISION.finditer(text))
    return change.model_copy(update={"precision": None}) if dropped else change


def without_what_is_so(change: Change, study: Study) -> Change:
    """The change without counts that the run has already, which say of which run something is asked: "at 8k"."""
    workload = study.experiment.workload
    now = {"batch": workload.global_batch, "sequence": workload.sequence_length}
    left = tuple((thing, to) for thing, to in change.counts if thing not in now or to.of(now[thing]) != now[thing])
    return change.model_copy(update={"counts": left})


def real_change(change: Change, study: Study) -> Change:
    """The change without what is so already: "all 16 chips" of 16, "on v5e" of a v5e."""
    if change.model is not None:
        change = change.model_copy(update={"model": other_model(change.model, study.experiment.model)})
    same = study.slice is not None and change.hardware in _names(study.slice.chip.name)
    if same and not dict(change.counts).keys() & _SIZES:
        change = change.model_copy(update={"hardware": None})
    change = _without_model_as_it_is(change, study)
    chips = change.get("chips")
    if change.get("slices") is not None:
        return change
    if chips is None or study.slice is None or chips.of(study.slice.devices) != study.slice.devices or change.hardware:
        return change
    return change.model_copy(update={"counts": tuple(pair for pair in change.counts if pair[0] != "chips")})


def _names(chip: str) -> tuple[str, ...]:
    """A chip's name, and that without the size of its memory: "a100" of an a100-80gb."""
    return chip, re.sub(r"-\d+gb$", "", chip)


def _without_model_as_it_is(change: Change, study: Study) -> Change:
    """The change without counts that the model on record has: "we have 32 layers" of 32."""
    model = study.experiment.model
    if model is None:
        return change
    now = {thing: getattr(model, thing) for thing in _OF_MODEL}
    left = tuple((thing, to) for thing, to in change.counts if thing not in now or to.of(now[thing]) != now[thing])
    return change.model_copy(update={"counts": left})


def without_settings_as_they_are(change: Change, study: Study, text: str) -> Change:
    """The change without the optimizer of now, unless it is switched to, and without remat that is so already."""
    update = {}
    if change.optimizer == study.experiment.workload.optimizer and not _SWITCHES.search(text):
        update["optimizer"] = None
    if study.plan is not None and change.remat == study.plan.remat and _ALREADY.search(text):
        update["remat"] = None
    return change.model_copy(update=update) if update else change
