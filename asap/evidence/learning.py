"""Measured plans teach of the plans near them: their residuals are carried over as ``asap optimize`` does."""

from collections.abc import Mapping, Sequence

import numpy as np

from asap.core.units import Quantity
from asap.evidence.step_belief import Result, believe, prior_of
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.calibration import load_calibration

SOURCE = "moved by what other plans measured"
_LEAST = 1e-9


def learned(predictions: Sequence[Prediction], now: Plan, measured: Mapping[Plan, float]) -> list[Prediction]:
    """Predictions after what other plans measured.

    Args:
        predictions: before any of these measurements.
        now: what runs now, which the predictions are relative to.
        measured: step time over that of what runs now, of plans that were run.
    """
    ratios = {
        one.plan: one.relative_step_time.value
        for one in predictions
        if one.relative_step_time is not None and _is_calibrated(one)
    }
    known = {plan: ratio for plan, ratio in measured.items() if plan in ratios}
    if not known:
        return list(predictions)
    prior = prior_of([now, *ratios], [1.0, *ratios.values()])
    found = [Result(str(now), 1.0, 0.0, 1), *(Result(str(plan), ratio, 0.0, 1) for plan, ratio in known.items())]
    kernel = load_calibration().full.residual_kernel
    apart = [prior.apart(prior.index[one.configuration]) for one in found]
    before, after = believe(prior, kernel, found[:1], apart[:1]), believe(prior, kernel, found, apart)
    factors, widths = np.exp(after.mean - before.mean), after.deviation / np.maximum(before.deviation, _LEAST)
    places = {plan: prior.index[str(plan)] for plan in ratios if plan not in known}
    return [
        _moved(one, float(factors[place]), float(widths[place])) if (place := places.get(one.plan)) is not None else one
        for one in predictions
    ]


def _is_calibrated(prediction: Prediction) -> bool:
    """Whether it is known how the residuals of such predictions go together: those of an architecture."""
    return prediction.relative_step_time is not None and prediction.method != "profile_ratios"


def _moved(prediction: Prediction, factor: float, width: float) -> Prediction:
    """The prediction with its times ``factor`` as long, and the interval on a logarithmic scale ``width`` as wide."""
    return prediction.model_copy(
        update={
            "step_time": _scaled(prediction.step_time, factor, width),
            "relative_step_time": _scaled(prediction.relative_step_time, factor, width),
            "tokens_per_second": _scaled(prediction.tokens_per_second, 1 / factor, width),
            "mfu": _scaled(prediction.mfu, 1 / factor, width),
        }
    )


def _scaled(figure: Quantity | None, factor: float, width: float) -> Quantity | None:
    if figure is None:
        return None
    ends = {
        name: figure.value * factor * (end / figure.value) ** width
        for name, end in (("low", figure.low), ("high", figure.high))
        if end
    }
    return figure.model_copy(update={"value": figure.value * factor, "source": f"{figure.source}; {SOURCE}", **ends})
