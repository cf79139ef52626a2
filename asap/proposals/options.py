"""What it would take to do better than the allowed levers can: other numerics, another batch, more chips."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import AsapError
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.experiments import HardwareReference
from asap.hardware.slices import default_topology
from asap.levers.batch import GLOBAL_BATCH
from asap.levers.table import LEVERS, changed_levers
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.prediction.step_model.encoding.workload import accumulates_whole
from asap.proposals.launch import launcher_line, why_not_launched
from asap.proposals.selection.choice import MEASURABLE
from asap.proposals.selection.search import search
from asap.study.study import Preferences, Study, study_of

NARROW = {"tpu": ("int8", "fp8"), "gpu": ("fp8",)}
"""Precisions below bf16 that a decoder is trained in, by kind of chip: on GPUs no stack trains in int8."""
SETTING = "setting"
SYNC_EACH_BATCH = "sync_each_batch"
SHARDED_GRADIENTS = "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}"
"""Of Hugging Face's Trainer (transformers, ``AcceleratorConfig``) and of Axolotl, which hands it on."""
TIMES_MORE_CHIPS = (2, 4, 8, 16)  # more devices that are asked about; judgement: which options are shown
PARTS_OF_BATCH = (2, 4, 8)  # smaller batches that are asked about; judgement: which options are shown
_LOOKED_AT = 500
"""Of the best configurations, those that are looked at for one that can be launched. Judgement: only the time."""


class Option(BaseModel):
    """Something that is not allowed unless the user says so, and what it would bring. Modelled."""

    model_config = ConfigDict(frozen=True)

    changes: str = Field(description="a setting, numerics, batch or chips")
    plan: Plan
    statement: str
    tokens_per_second: float | None = Field(default=None, description="over those of the plan that runs")
    fits: bool = True
    lines: tuple[str, ...] = Field(default=(), description="what to paste")


def options(study: Study, incumbent: Prediction | None) -> tuple[Option, ...]:
    """What is worth asking for; nothing where the architecture or the plan is not known."""
    if incumbent is None or study.plan is None or incumbent.memory is None or incumbent.tokens_per_second is None:
        return ()
    bare = replace(study, profile=None)
    now = expect(bare, [study.plan])[0]
    if not incumbent.memory.fits:
        return (*_sharded_gradients(bare, study.plan), *_on_request(bare), *_smaller_batch(bare), *_more_chips(bare))
    return (*_faster_with_sharded_gradients(bare, now), *_precision(bare, now), *_batch(bare, now))


def _sharded_gradients(study: Study, plan: Plan) -> Iterator[Option]:
    """What runs now, or the best that then fits, with gradients that the Trainer shards in every microbatch."""
    if not accumulates_whole(study.experiment.workload) or (plan.microbatches or 1) == 1:
        return
    sharded = _set_workload(study, sync_each_batch=True)
    (present,) = expect(sharded, [plan])
    fits = present.memory is not None and present.memory.fits
    found = present if fits else _best(sharded)
    alone = expect(study, [found.plan])[0].memory if found is not None and not fits else None
    if found is not None and not (alone and alone.fits):
        what, mesh = ("what runs now", "") if fits else (found.plan, launcher_line(study, found.plan))
        statement = f"With gradients sharded in every microbatch ({SHARDED_GRADIENTS}) {what} fits, {_costs(found)}."
        yield Option(
            changes=SETTING, plan=found.plan, statement=statement, lines=(*mesh.splitlines(), SHARDED_GRADIENTS)
        )


def _faster_with_sharded_gradients(study: Study, now: Prediction) -> Iterator[Option]:
    """What the HBM of whole gradients makes possible, where that is faster than anything that keeps them."""
    if not accumulates_whole(study.experiment.workload):
        return
    found, kept = _best_or_present(_set_workload(study, sync_each_batch=True)), _best_or_present(study)
    if found is not None and _is_faster(found, now) and (kept is None or _is_faster(found, kept)):
        yield _faster(SETTING, f"With gradients sharded in every microbatch ({SHARDED_GRADIENTS})", found, now)


def _on_request(study: Study) -> Iterator[Option]:
    """What each lever on request would make possible, if the user allowed it besides; where something fits without it,
    only what is faster."""
    without = _best(study)
    for lever in LEVERS:
        if not lever.on_request or lever.name in (*study.preferences.allowed, GLOBAL_BATCH.name):
            continue
        found = _best(replace(study, preferences=Preferences(allowed=study.preferences.allowed | {lever.name})))
        if found is None or study.plan is None or (without is not None and not _is_faster(found, without)):
            continue
        if lever in changed_levers(found.plan, study.plan):
            statement = f"With {lever.title} (--allow {lever.name}) {found.plan} fits, {_costs(found)}."
            yield Option(changes="numerics", plan=found.plan, statement=statement)


def _smaller_batch(study: Study) -> Iterator[Option]:
    """The largest part of the batch with which something fits, unless what fits now is faster for each sequence."""
    batch, whole = study.experiment.workload.global_batch or 0, _best(study)
    for part in PARTS_OF_BATCH:
        found = _best(_set_workload(study, global_batch=batch // part)) if batch % part == 0 and batch else None
        if found is not None and (whole is None or _rate(found) > _rate(whole)):
            said = f"With {batch // part} sequences in a step, 1/{part} of now, {found.plan} fits, {_costs(found)}."
            yield Option(changes="batch", plan=found.plan, statement=said)
        if found is not None:
            return


def _more_chips(study: Study) -> Iterator[Option]:
    for times in TIMES_MORE_CHIPS:
        larger = _on_more_chips(study, times)
        found = _best(larger) if larger is not None else None
        if larger is not None and larger.slice is not None and found is not None:
            parts = f" in {larger.slice.slices} slices" if larger.slice.slices > 1 else ""
            chips = f"{larger.slice.chips} chips{parts}, {times} times as many"
            said = f"On {chips}, {found.plan} fits, {_costs(found)}."
            yield Option(changes="chips", plan=found.plan, statement=said)
            return


def _on_more_chips(study: Study, times: int) -> Study | None:
    """The run on so many times the chips: a larger slice where there is one, else more slices."""
    hardware, plan, experiment = study.slice, study.plan, study.experiment
    assert hardware is not None
    assert plan is not None
    topology = default_topology(hardware.chip, hardware.chips_per_slice * times)
    sharded = "data" if plan.degree("data") > 1 or plan.degree("replica") == 1 else "replica"
    slices = hardware.slices
    if hardware.topology is not None and topology is None:
        slices *= times
        dcn = plan.dcn.model_copy(update={sharded: getattr(plan.dcn, sharded) * times})
        plan = plan.model_copy(update={"dcn": dcn})
        topology = hardware.topology
    else:
        plan = plan.with_ici(**{sharded: getattr(plan.ici, sharded) * times})
    reference = HardwareReference(
        chip=hardware.chip.name, topology=topology, slices=slices,
        devices=None if topology else hardware.devices * times, network=experiment.hardware.network,
    )  # fmt: skip
    try:
        found = study_of(experiment.model_copy(update={"hardware": reference, "plan": plan}))
    except AsapError:
        return None
    return found if found.slice is not None and found.slice.devices == plan.devices else None


def _precision(study: Study, now: Prediction) -> Iterator[Option]:
    hardware, workload = study.slice, study.experiment.workload
    assert hardware is not None
    peaks = hardware.chip.peak_flops
    present = peaks.get(workload.precision or "bf16", max(peaks.values()))
    for name in NARROW.get(hardware.chip.kind, ()):
        if peaks.get(name, 0.0) > present:
            found = _best_or_present(_set_workload(study, precision=name))
            if found is not None and _is_faster(found, now):
                yield _faster("numerics", f"Matrix multiplications in {name} with", found, now)
            return


def _batch(study: Study, now: Prediction) -> Iterator[Option]:
    batch = study.experiment.workload.global_batch
    if not batch or GLOBAL_BATCH.name in study.preferences.allowed:
        return
    found = _best_or_present(_set_workload(study, global_batch=2 * batch))
    if found is not None and _is_faster(found, now):
        larger = ", in half the steps (--allow global_batch searches larger ones, too)"
        yield _faster("batch", f"Twice the batch ({2 * batch} sequences) with", found, now, larger)


def _set_workload(study: Study, **changed: object) -> Study:
    workload = study.experiment.workload.model_copy(update=changed)
    experiment = study.experiment.model_copy(update={"workload": workload, "measured": None})
    constraints = replace(study.constraints, global_batch=workload.global_batch)
    return replace(study, experiment=experiment, constraints=constraints)


def _best(study: Study) -> Prediction | None:
    """The best configuration that fits and that the run's launcher has words for, by the search alone."""
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    plans = (found.plan(place) for place in found.leading[:_LOOKED_AT]) if found else ()
    plan = next((plan for plan in plans if why_not_launched(study, plan) is None), None)
    return expect(study, [plan])[0] if plan is not None else None


def _best_or_present(study: Study) -> Prediction | None:
    """The faster of that and the plan that runs, which the search has only where layers divide over its stages."""
    assert study.plan is not None
    found = (_best(study), expect(study, [study.plan])[0])
    fitting = [one for one in found if one is not None and (one.memory is None or one.memory.fits)]
    return max(fitting, key=_rate, default=None)


def _faster(changes: str, words: str, found: Prediction, now: Prediction, besides: str = "") -> Option:
    ratio = _rate(found) / _rate(now)
    said = f"{words} {found.plan}: {format_percent(ratio - 1, 0)} more tokens/s than now (modelled){besides}."
    return Option(changes=changes, plan=found.plan, tokens_per_second=ratio, statement=said)


def _is_faster(found: Prediction, now: Prediction) -> bool:
    """By what two short runs can tell apart."""
    return _rate(found) > _rate(now) * math.exp(MEASURABLE)


def _rate(found: Prediction) -> float:
    return found.tokens_per_second.value if found.tokens_per_second else 0.0


def _costs(found: Prediction) -> str:
    assert found.step_time is not None
    assert found.memory is not None
    held = f"{format_bytes(found.memory.total.value)} of {format_bytes(found.memory.capacity_bytes)}"
    return f"with {held} and a step of {format_seconds(found.step_time.value)} (modelled)"
