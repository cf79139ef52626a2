"""How much of a run's residual other plans share, fitted to pairs of runs whose sources were left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.fit.intervals import source_weights, weighted_quantile
from asap.prediction.uncertainty.residual_transfer import ResidualTransfer

Vector = NDArray[np.float64]

COMMON = 0.9
NEAREST, FARTHEST = 0.01, 100.0
"""Bounds of the reach."""


def common_size(residuals: Vector, sources: Sequence[str]) -> float:
    """The size of residual that nine in ten runs stay below."""
    return round(weighted_quantile(np.abs(residuals), source_weights(sources), COMMON), 4)


def fit_residual_transfer(
    known: Vector, other: Vector, change: Vector, sources: Sequence[str], limit: float
) -> ResidualTransfer:
    """The reach that leaves the least absolute error.

    Args:
        known: residuals ln(measured / modelled) of the measured runs.
        other: of the runs that are predicted from them.
        change: how much of the step changes between them.
        sources: of the pairs.
        limit: residual beyond which the rest transfers whole.
    """
    from scipy.optimize import minimize_scalar

    if not len(known):
        return ResidualTransfer(limit=limit)
    weights = source_weights(sources)

    def transfer(log_reach: float) -> ResidualTransfer:
        return ResidualTransfer(reach=round(float(np.exp(log_reach)), 4), limit=limit)

    def loss(log_reach: float) -> float:
        return float(weights @ np.abs(other - transfer(log_reach).expected(known, change)))

    bounds = np.log((NEAREST, FARTHEST)).tolist()
    return transfer(minimize_scalar(loss, bounds=bounds, method="bounded").x)
