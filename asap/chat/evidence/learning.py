"""Measured plans teach of the plans near them: their residuals are carried over as ``asap optimize`` does."""

from collections.abc import Mapping, Sequence

import numpy as np

from asap.core.provenance import Quantity
from asap.optimize.proposers.prior import Prior, plans_apart
from asap.optimize.proposers.step_belief import believe
from asap.optimize.results import Result
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.selection.candidate import Candidate, expected_gain, with_prediction

SOURCE = "moved by what other plans measured"
_LEAST = 1e-9


def learned(candidates: Sequence[Candidate], now: Plan, measured: Mapping[Plan, float]) -> list[Candidate]:
    """The candidates after what other plans measured.

    Args:
        candidates: with what is predicted of them, before any of these measurements.
        now: what runs now, which the predictions are relative to.
        measured: step time over that of what runs now, of candidates that were run.
    """
    gains = {c.plan: expected_gain(c.prediction) for c in candidates if _is_calibrated(c.prediction)}
    known = {plan: ratio for plan, ratio in measured.items() if plan in gains}
    if not known:
        return list(candidates)
    prior = _prior([now, *gains], [0.0, *gains.values()])
    found = [Result(str(now), 1.0, 0.0, 1), *(Result(str(plan), ratio, 0.0, 1) for plan, ratio in known.items())]
    kernel, apart = (
        load_calibration().full.residual_kernel,
        [prior.apart(prior.index[one.configuration]) for one in found],
    )
    before, after = believe(prior, kernel, found[:1], apart[:1]), believe(prior, kernel, found, apart)
    factors, widths = np.exp(after.mean - before.mean), after.deviation / np.maximum(before.deviation, _LEAST)
    places = {c.plan: prior.index[str(c.plan)] for c in candidates if c.plan in gains and c.plan not in known}
    return [
        with_prediction(c, _moved(c.prediction, float(factors[place]), float(widths[place])))
        if (place := places.get(c.plan)) is not None
        else c
        for c in candidates
    ]


def _is_calibrated(prediction: Prediction) -> bool:
    """Whether it is known how the residuals of such predictions go together: those of an architecture."""
    return prediction.relative_step_time is not None and prediction.method != "profile_ratios"


def _prior(plans: Sequence[Plan], gains: Sequence[float]) -> Prior:
    """What is believed before: the predictions, relative to what runs now."""
    return Prior(
        configurations=tuple(map(str, plans)),
        log_time=-np.array(gains),
        log_fill=None,
        effort=np.zeros(len(plans)),
        apart=plans_apart(plans),
    )


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
