"""Intervals from residuals of left-out sources (split conformal prediction, arXiv:2107.07511, sections 1 and 2).

Residuals are binned by distance; the half-width of a bin is the 90 % quantile of ``|ln(measured / predicted)|`` in it,
and never less than that of a nearer bin. Sources weigh less than in proportion to their rows.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from asap.prediction.calibration import Widths

Vector = NDArray[np.float64]

COVERAGE = 0.9
SOURCE_POWER = 0.3  # n residuals of a source weigh as n ** 0.3 independent ones
ENOUGH = 30  # residuals that a bin needs to have a quantile of its own


def widths_of(residuals: Vector, distances: Vector, sources: Sequence[str], edges: Sequence[float]) -> Widths:
    """Half-widths by bin of distance; a bin with too few residuals takes over its neighbour's."""
    counts = Counter(sources)
    weights = np.array([counts[source] ** (SOURCE_POWER - 1) for source in sources])
    size, widest, found = np.abs(residuals), 0.0, []
    everything = weighted_quantile(size, weights, COVERAGE)
    bounds = [-np.inf, *edges, np.inf]
    for low, high in pairwise(bounds):
        inside = (distances >= low) & (distances < high)
        own = weighted_quantile(size[inside], weights[inside], COVERAGE) if inside.sum() >= ENOUGH else None
        widest = max(widest, own if own is not None else (widest or everything))
        found.append(round(float(widest), 4))
    return Widths(edges=tuple(edges), half_widths=tuple(found))


def weighted_quantile(values: Vector, weights: Vector, share: float) -> float:
    """The smallest value below which at least ``share`` of the weight lies."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(cumulative, share)), len(values) - 1)])
