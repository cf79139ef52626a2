"""How much of a run's residual other plans share, fitted to pairs of runs whose sources were left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.fit.intervals import source_weights, weighted_quantile
from asap.prediction.uncertainty.residual_transfer import ResidualTransfer

Vector = NDArray[np.float64]

COMMON = 0.9
ENOUGH = 30  # pairs that a bin needs to have a share of its own


def common_size(residuals: Vector, sources: Sequence[str]) -> float:
    """The size of residual that nine in ten runs stay below."""
    return round(weighted_quantile(np.abs(residuals), source_weights(sources), COMMON), 4)


def fit_residual_transfer(
    known: Vector, other: Vector, distances: Vector, sources: Sequence[str], edges: Sequence[float], limit: float
) -> ResidualTransfer:
    """The share that leaves the least absolute error, by bin of distance; too few pairs take their neighbour's.

    Args:
        known: residuals ln(measured / modelled) of the measured runs.
        other: of the runs that are predicted from them.
        distances: between their plans; pairs of the same plan are not used.
        sources: of the pairs.
        edges: of the bins.
        limit: residual beyond which the rest transfers whole.
    """
    weights = source_weights(sources) * np.abs(known)
    ratios = other / np.where(known == 0, 1.0, known)
    bins, share, shares = np.searchsorted(edges, distances, side="right"), 1.0, []
    for bin_ in range(len(edges) + 1):
        inside = (bins == bin_) & (distances > 0) & (known != 0)
        if inside.sum() >= ENOUGH:
            share = min(share, max(weighted_quantile(ratios[inside], weights[inside], 0.5), 0.0))
        shares.append(round(share, 4))
    return ResidualTransfer(edges=tuple(edges), shares=tuple(shares), limit=limit)
