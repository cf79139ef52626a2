"""The step time of another run from the trace of this one.

Each kernel of the trace takes its time times the factor of its class, and the graph is replayed: overlap, waits and
idle time follow. Collectives that no kernel of the trace stands for, and the bubble of a pipeline without one, come
from the step model. Virtual devices of a CPU share its cores: there the step is as long as all that they do.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import Provenance, Quantity, format_percent
from asap.hardware import find_chip, load_chip
from asap.plans import Plan
from asap.prediction.from_trace import factors as by_class
from asap.prediction.from_trace.chip import Rates, on_another_chip
from asap.prediction.from_trace.factors import Factors
from asap.prediction.from_trace.one_stage import OneStage, last_pass, last_pass_scaled, longest_stage
from asap.prediction.from_trace.run import Run, changed_run, chip_asked, is_setting, virtual_devices
from asap.prediction.prediction import Prediction
from asap.study.study import Study
from asap.traces.analysis.critical_path import core_times, share_cores
from asap.traces.analysis.iterations import step_time
from asap.traces.analysis.report import QualityVerdict
from asap.traces.graph.graph import Graph
from asap.traces.recording import read_graph, read_recording
from asap.traces.trace import NS
from asap.traces.what_if.apply import Changed, apply, scaled_edges
from asap.traces.what_if.change import Change, parse_change
from asap.traces.what_if.predict import Added, Baseline, WhatIfPrediction, predict_change, predict_changed

UNCHECKED = (
    "another plan, model, batch or chip: kernels are scaled by the step model, which no run of GPUs or TPUs under two"
    " plans has checked yet; between meshes of eight devices of a CPU the median error was 2 to 7 %"
)
"""``scripts/trace_meshes.py``: 42 predictions between seven meshes for each of six sizes of a decoder."""


def predict_run(graph: Graph, traced: Run, target: Run, changes: Sequence[Change] = ()) -> WhatIfPrediction:
    """What a step of another run takes; arguments and errors as of :func:`predict_runs`."""
    return predict_runs(graph, traced, [target], changes)[0]


def predict_runs(
    graph: Graph, traced: Run, targets: Sequence[Run], changes: Sequence[Change] = ()
) -> list[WhatIfPrediction]:
    """What a step of each of several other runs takes.

    Args:
        graph: of the traced run.
        traced: what was traced.
        targets: what is asked about.
        changes: of the graph, made first.

    Raises:
        InsufficientEvidenceError: the trace does not explain enough, or the model is not known.
    """
    graph = longest_stage(graph, traced.plan)
    baseline, changed = Baseline.of(graph), apply(graph, changes)
    shared, stage = share_cores(graph.trace.ranks), OneStage.of(changed.graph, traced)
    scaled = _scale_shared(graph, changed, traced) if shared else _scale_classes(graph, changed, stage)
    products = 0.0 if shared else _products_s(graph)
    names, _ = by_class.classes_of(graph, traced.plan)
    before, *after = (stage.modelled(each, names) for each in (traced, *targets))
    found = [by_class.factors(before, then, traced, each, products) for then, each in zip(after, targets, strict=True)]
    return [predict_changed(baseline, *scaled(each), each.doubt)._replace(note=UNCHECKED) for each in found]


def what_if(
    graph: Graph, changes: Sequence[str], study: Study | None = None, plan: Plan | None = None,
    recording: str | Path | None = None,
) -> WhatIfPrediction:  # fmt: skip
    """What a step takes after changes in their text form.

    Args:
        graph: of the traced run.
        changes: of the graph, and settings of the run.
        study: of the traced run; without it only the graph can be changed.
        plan: that was traced, if it is not the study's.
        recording: what the graph was read from, if it is not the study's.

    Raises:
        UsageError: a change is none.
        InsufficientEvidenceError: the trace or the study does not hold what a change concerns.
    """
    known = study is not None and study.experiment.model is not None
    chips = [] if known else [change for change in changes if chip_asked(change)]
    settings = [change for change in changes if study is not None and is_setting(change) and change not in chips]
    parsed = [parse_change(change) for change in changes if change not in (*settings, *chips)]
    if chips and not settings:
        return _by_roofline(graph, parsed, chips[-1], study, recording)
    if study is None or not settings:
        return predict_change(graph, parsed)
    ranks = graph.trace.ranks
    traced = Run.of(study, plan, virtual_devices(len(ranks)) if share_cores(ranks) else None)
    return predict_run(graph, traced, changed_run(traced, settings), parsed)


def _by_roofline(
    graph: Graph, changes: Sequence[Change], setting: str, study: Study | None, recording: str | Path | None
) -> WhatIfPrediction:
    """On another chip, where the model is not known."""
    then = load_chip(chip_asked(setting))
    profile = read_recording(recording or (study.recording if study else None) or "")
    found = find_chip(profile.device_type) if profile.device_type else None
    now = study.chip if study and study.chip else found.chip if found else None
    if now is None or share_cores(graph.trace.ranks):
        message = "the trace does not say which chip ran it, or a CPU did"
        raise InsufficientEvidenceError(message, hint="say what was traced: --experiment ID")
    rates = (Rates(chip, profile.devices or 1) for chip in (now, then))
    changed, doubt, note = on_another_chip(apply(graph, changes), profile.operations, *rates)
    return predict_changed(Baseline.of(graph), changed, doubt=doubt)._replace(note=note)


def _products_s(graph: Graph) -> float:
    """Seconds of products in a traced step, mean over ranks; 0 where nothing says which operations they are."""
    taken = 0.0
    for rank in graph.trace.ranks:
        times = np.maximum(rank.operations.end - rank.operations.start - by_class.KERNEL, 0)
        taken += NS * float(times[by_class.class_labels(rank) == by_class.PRODUCTS].sum()) / max(len(rank.steps), 1)
    return taken / len(graph.trace.ranks)


_Scaled = Callable[[Factors], tuple[Changed, Added]]  # the graph of another run, and what comes on top


def _scale_classes(graph: Graph, changed: Changed, stage: OneStage) -> _Scaled:
    """Devices of their own: each class by its factor."""
    plan, count = stage.traced.plan, stage.traced.pipeline.microbatches
    names, classes = by_class.classes_of(changed.graph, plan)
    last = last_pass(changed.graph, plan)

    def scaled(found: Factors) -> tuple[Changed, Added]:
        target = by_class.scaled_classes(changed, names, classes, found)
        target = last_pass_scaled(target, last, count, found.after.microbatches)
        passes = by_class.passes_s(changed, names, classes, found, stage.traced)
        target, added = stage.placed(target, found, passes)
        return target, added._replace(communication_s=found.exposed_on_new_axes(passes[1]))

    return scaled


def _scale_shared(graph: Graph, changed: Changed, traced: Run) -> _Scaled:
    """Devices that share the cores of a host: everything by how the time of all of them changes.

    Nothing hides behind anything else there, so of a new axis all of its time counts, not what is exposed of it.
    """
    taken: dict[str, float] = defaultdict(float)
    for rank, times in zip(graph.trace.ranks, core_times(graph.trace.ranks), strict=True):
        labels = by_class.class_labels(rank)
        for name in np.unique(labels).tolist():
            taken[name] += float(times[labels == name].sum())
    moving = sum(time for name, time in taken.items() if name not in by_class.OF_DEVICES)
    second = step_time(graph).measured_s / sum(taken.values())
    everything = np.zeros(len(changed.scaled), dtype=np.int64)

    def scaled(found: Factors) -> tuple[Changed, Added]:
        kept = sum(time * by_class.factor_of(found, name, taken) for name, time in taken.items()) / sum(taken.values())
        known = sum(found.before.axes.values())
        added = found.on_new_axes(found.after.axes) * moving / known if known else 0.0
        devices = found.target.hardware.devices / traced.hardware.devices
        return scaled_edges(changed, everything, [devices * kept]), Added(devices * added * second)

    return scaled


SOURCE = "replay of the recorded run, its kernels scaled by the step model"


def replay_step_times(study: Study, predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions with the step time of the replay, where the run was recorded and its replay explains it.

    Devices of a CPU share its cores, and it is not recorded which of them a collective joins: these are left out.
    """
    explained = study.replay is not None and study.replay.quality.verdict is QualityVerdict.GOOD
    if study.recording is None or study.plan is None or not explained:
        return list(predictions)
    try:
        traced = Run.of(study)
        graph = read_graph(study.recording)
        if any(rank.groups_unknown for rank in graph.trace.ranks):
            return list(predictions)
        found = predict_runs(graph, traced, [replace(traced, plan=each.plan) for each in predictions])
    except InsufficientEvidenceError:
        return list(predictions)
    return [_replayed(*pair) for pair in zip(predictions, found, strict=True)]


def _replayed(prediction: Prediction, found: WhatIfPrediction) -> Prediction:
    before = prediction.step_time
    if before is None or not found.value:
        return prediction
    ratio = found.value / before.value
    return prediction.model_copy(
        update={
            "method": "trace_replay",
            "step_time": _quantity(found, 1.0, "s"),
            "relative_step_time": _quantity(found, found.measured, "fraction"),
            "parts": tuple(
                part.model_copy(update={"busy_s": part.busy_s * ratio, "exposed_s": part.exposed_s * ratio})
                for part in prediction.parts
            ),
            "tokens_per_second": _faster(prediction.tokens_per_second, before, found),
            "mfu": _faster(prediction.mfu, before, found),
            "notes": (*prediction.notes, _shares(found)),
        }
    )


def _quantity(found: WhatIfPrediction, whole: float, unit: str) -> Quantity:
    value, low, high = (each / whole for each in (found.value, found.low, found.high))
    return Quantity(value=value, unit=unit, provenance=Provenance.MODELLED, source=SOURCE, low=low, high=high)


def _faster(rate: Quantity | None, step: Quantity, found: WhatIfPrediction) -> Quantity | None:
    """A rate goes up as the step gets shorter."""
    if rate is None:
        return None
    work = rate.value * step.value
    times = {"value": work / found.value, "low": work / found.high, "high": work / found.low}
    return rate.model_copy(update={**times, "source": SOURCE})


def _shares(found: WhatIfPrediction) -> str:
    shares = (found.traced, found.scaled, found.modelled)
    traced, scaled, modelled = (format_percent(share, 0) for share in shares)
    parts = f"{traced} as traced, {scaled} traced and scaled, {modelled} modelled"
    return f"By the replay of the recorded run ({parts}); no run that was traced under two plans has checked this yet."
