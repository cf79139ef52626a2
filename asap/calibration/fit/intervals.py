"""Intervals from residuals of left-out sources (split conformal prediction, arXiv:2107.07511, sections 1 and 2).

Residuals are binned by distance; the half-width of a bin is a quantile of ``|ln(measured / predicted)|`` in it, and
never less than that of a nearer bin. Sources weigh less than in proportion to their rows. Since rows of one source err
together, the 90 % quantile over some sources covers less than 90 % of another; the level makes up for it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from asap.prediction.uncertainty.calibration import Widths

Vector = NDArray[np.float64]

COVERAGE = 0.9
LEVELS = (0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)
SOURCE_POWER = 0.3  # n residuals of a source weigh as n ** 0.3 independent ones
ENOUGH = 30  # residuals that a bin needs to have a quantile of its own


def fair_level(residuals: Vector, distances: Vector, sources: Sequence[str], edges: Sequence[float]) -> float:
    """The lowest quantile over all other sources that covers 90 % of a source, on average over sources."""
    names, weights = np.array(sources), source_weights(sources)
    for level in LEVELS:
        covered = np.empty(len(names), dtype=bool)
        for name in set(sources):
            own = names == name
            widths = widths_of(residuals[~own], distances[~own], names[~own].tolist(), edges, level)
            covered[own] = np.abs(residuals[own]) <= np.array([widths.at(distance) for distance in distances[own]])
        if np.average(covered, weights=weights) >= COVERAGE:
            return level
    return LEVELS[-1]


def source_weights(sources: Sequence[str]) -> Vector:
    """Weight of each residual."""
    counts = Counter(sources)
    return np.array([counts[source] ** (SOURCE_POWER - 1) for source in sources])


def widths_of(
    residuals: Vector, distances: Vector, sources: Sequence[str], edges: Sequence[float], level: float = COVERAGE
) -> Widths:
    """Half-widths by bin of distance; a bin with too few residuals takes over its neighbour's."""
    weights = source_weights(sources)
    size, widest, found = np.abs(residuals), 0.0, []
    everything = weighted_quantile(size, weights, level)
    bounds = [-np.inf, *edges, np.inf]
    for low, high in pairwise(bounds):
        inside = (distances >= low) & (distances < high)
        own = weighted_quantile(size[inside], weights[inside], level) if inside.sum() >= ENOUGH else None
        widest = max(widest, own if own is not None else (widest or everything))
        found.append(round(float(widest), 4))
    return Widths(edges=tuple(edges), half_widths=tuple(found))


def weighted_quantile(values: Vector, weights: Vector, share: float) -> float:
    """The smallest value below which at least ``share`` of the weight lies."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(cumulative, share)), len(values) - 1)])


def macro_median(errors: Vector, sources: Sequence[str]) -> float:
    """Mean over sources of each source's median."""
    by_source: dict[str, list[float]] = defaultdict(list)
    for error, source in zip(errors, sources, strict=True):
        by_source[source].append(float(error))
    return float(np.mean([np.median(found) for found in by_source.values()]))
