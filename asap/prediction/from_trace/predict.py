"""The step time of another run from the trace of this one.

Each kernel of the trace takes its time times the factor of its class, and the graph is replayed: overlap, waits and
idle time follow. Time of collectives that no kernel of the trace stands for, and the bubble of a pipeline, come from
the step model, scaled by how the traced kernels of their class compare with it. Virtual devices of a CPU share its
cores: there the step is as long as all that they do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import Provenance, Quantity, format_percent
from asap.plans import Plan
from asap.prediction.from_trace.factors import Factors, classes_of, factors, modelled, scaled_alike, scaled_by
from asap.prediction.from_trace.gradient_overlap import GradientOverlap
from asap.prediction.from_trace.run import Run, changed_run, is_setting, virtual_devices
from asap.prediction.from_trace.shared_cores import CoreTime
from asap.prediction.prediction import Prediction
from asap.study.study import Study
from asap.traces.analysis.critical_path import share_cores
from asap.traces.analysis.iterations import step_time
from asap.traces.analysis.quality import QualityVerdict
from asap.traces.collectives import transfer_times
from asap.traces.graph.graph import Graph
from asap.traces.recording import read_graph
from asap.traces.trace import NS, Integers, OperationKind
from asap.traces.what_if.apply import Changed, apply
from asap.traces.what_if.change import Change, parse_change
from asap.traces.what_if.predict import Baseline, WhatIfPrediction, predict_change, predict_changed


def predict_run(graph: Graph, traced: Run, target: Run, changes: Sequence[Change] = ()) -> WhatIfPrediction:
    """What a step of another run takes.

    Args:
        graph: of the traced run.
        traced: what was traced.
        target: what is asked about.
        changes: of the graph, made first.

    Raises:
        InsufficientEvidenceError: the trace does not explain enough, or the model is not known.
    """
    (found,) = predict_runs(graph, traced, [target], changes)
    return found


def predict_runs(
    graph: Graph, traced: Run, targets: Sequence[Run], changes: Sequence[Change] = ()
) -> list[WhatIfPrediction]:
    """Several other runs; arguments and errors as of :func:`predict_run`."""
    baseline, changed, before = Baseline.of(graph), apply(graph, changes), modelled(traced)
    scale = _scale_shared if share_cores(graph.trace.ranks) else _scale_classes
    scaled = scale(graph, changed, traced)
    found = [factors(before, traced, target) for target in targets]
    return [predict_changed(baseline, *scaled(each), each.doubt)._replace(of_another_run=True) for each in found]


def what_if(
    graph: Graph, changes: Sequence[str], study: Study | None = None, plan: Plan | None = None
) -> WhatIfPrediction:
    """What a step takes after changes in their text form.

    Args:
        graph: of the traced run.
        changes: of the graph, and settings of the run.
        study: of the traced run; without it only the graph can be changed.
        plan: that was traced, if it is not the study's.

    Raises:
        UsageError: a change is none.
        InsufficientEvidenceError: the trace or the study does not hold what a change concerns.
    """
    settings = [change for change in changes if study is not None and is_setting(change)]
    parsed = [parse_change(change) for change in changes if change not in settings]
    if study is None or not settings:
        return predict_change(graph, parsed)
    ranks = graph.trace.ranks
    traced = Run.of(study, plan, virtual_devices(len(ranks)) if share_cores(ranks) else None)
    return predict_run(graph, traced, changed_run(traced, settings), parsed)


_Scaled = Callable[[Factors], tuple[Changed, float]]
"""The changed graph of another run, and the seconds that come on top."""


def _scale_classes(graph: Graph, changed: Changed, traced: Run) -> _Scaled:
    """Devices of their own: each class by its factor."""
    classes, gradients = classes_of(changed.graph, traced.plan), GradientOverlap.of(graph, traced.plan)

    def scaled(found: Factors) -> tuple[Changed, float]:
        return scaled_by(changed, classes, found), _added(graph, found) + gradients.added(found)

    return scaled


def _scale_shared(graph: Graph, changed: Changed, traced: Run) -> _Scaled:
    """Devices that share cores: everything by how the time of all of them changes."""
    del traced
    cores, seconds = CoreTime.of(graph.trace.ranks), step_time(graph).measured_s

    def scaled(found: Factors) -> tuple[Changed, float]:
        kept, added = cores.ratios(found)
        return scaled_alike(changed, kept), added * seconds

    return scaled


def _added(graph: Graph, found: Factors) -> float:
    """Seconds of new collectives, and what the bubble grows or shrinks by.

    A bubble that was traced grows with the work in it, in the graph; what is added is the rest.
    """
    known = sum(time for axis, time in found.before.axes.items())
    communicates = [rank.operations.kind == OperationKind.COMMUNICATION for rank in graph.trace.ranks]
    measured = _per_step(graph, transfer_times(graph.trace.ranks, graph.matched), communicates)
    calibrated = measured / known if known and measured else 1.0
    durations = [rank.operations.end - rank.operations.start for rank in graph.trace.ranks]
    working = _per_step(graph, durations, [~mask for mask in communicates])
    modelled = found.before.products + found.before.memory
    bubble = (found.after.bubble - found.before.bubble * found.compute) * (working / modelled if modelled else 1.0)
    return found.on_new_axes(found.after.exposed) * calibrated + bubble


def _per_step(graph: Graph, times: Sequence[Integers], masks: Sequence[NDArray[np.bool_]]) -> float:
    """Seconds that some operations of a rank take in a step, mean over ranks."""
    totals = [
        NS * float(time[mask].sum()) / max(len(rank.steps), 1)
        for rank, time, mask in zip(graph.trace.ranks, times, masks, strict=True)
    ]
    return float(np.mean(totals))


SOURCE = "replay of the recorded run, its kernels scaled by the step model"


def with_replay(study: Study, predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions with the step time of the replay, where the run was recorded and its replay explains it.

    Devices of a CPU share its cores, and it is not recorded which of them a collective joins: these are left out.
    """
    if study.recording is None or study.plan is None or not _is_explained(study):
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


def _is_explained(study: Study) -> bool:
    return study.replay is not None and study.replay.quality.verdict is QualityVerdict.GOOD


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
