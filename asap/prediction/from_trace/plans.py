"""Other plans of a recorded run: as the architecture predicts them, with the step time that the replay gives.

The step model scales each class of kernels; the replay adds what it cannot know: how they overlap, and what waits.
"""

from collections.abc import Sequence
from dataclasses import replace

from asap.core.errors import InsufficientEvidenceError
from asap.core.provenance import Provenance, Quantity
from asap.core.units import format_percent
from asap.prediction.from_trace.predict import predict_runs
from asap.prediction.from_trace.run import Run
from asap.prediction.prediction import Prediction
from asap.study.study import Study
from asap.traces.analysis.quality import QualityVerdict
from asap.traces.recording import read_graph
from asap.traces.what_if.predict import WhatIfPrediction

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
