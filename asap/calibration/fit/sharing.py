"""What the residuals of one team's runs have in common, fitted to published sources that the constants had not seen."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.fit.intervals import conformal_quantile
from asap.prediction.uncertainty.own_runs import Likeness
from asap.prediction.uncertainty.sharing import Sharing

Vector = NDArray[np.float64]
MOST_KNOWN = (1, 3, 10, 1000)
"""Runs that are given of a source, at most half of it: a team may have few or many."""


def fit_sharing(residuals: Vector, likeness: Sequence[Likeness], sources: Sequence[str]) -> Sharing:
    """The shares of variance that pairs of runs of a source have in common, every source weighing the same.

    Args:
        residuals: ln(measured / predicted) in half-widths, of runs whose source the fit had not seen.
        likeness: of the same runs.
        sources: of the same runs.
    """
    names = np.array(sources)
    rows: list[list[int]] = [np.flatnonzero(names == name).tolist() for name in sorted({*sources})]
    found = [_shares(residuals[own], [likeness[row] for row in own]) for own in rows]
    stack, setting = (max(float(np.nanmean([each[place] for each in found])), 0.0) for place in (0, 1))
    fitted = Sharing(
        stack=round(min(stack, setting), 4),
        setting=round(setting, 4),
        mean_square=round(float(np.mean([np.mean(residuals[own] ** 2) for own in rows])), 4),
    )
    widest = max(_quantile(residuals, likeness, rows, fitted, most) for most in MOST_KNOWN)
    return fitted.model_copy(update={"quantile": round(widest, 4)})


def _quantile(
    residuals: Vector, likeness: Sequence[Likeness], rows: Sequence[list[int]], sharing: Sharing, most_known: int
) -> float:
    """What the interval has to be multiplied by where so many runs of a source are given, at most."""
    scores, of = list[float](), list[str]()
    for source, own in enumerate(rows):
        other, shift, scale = from_half(residuals[own], [likeness[row] for row in own], sharing, most_known)
        scores += (np.abs(residuals[own][other] - shift) / scale).tolist()
        of += [str(source)] * len(other)
    return conformal_quantile(np.array(scores), of)


def from_half(
    residuals: Vector, likeness: Sequence[Likeness], sharing: Sharing, most_known: int
) -> tuple[NDArray[np.int64], Vector, Vector]:
    """Give half of a source's runs, predict the others, and the other way round.

    Args:
        residuals: of the source's runs, in half-widths.
        likeness: of the same runs.
        sharing: how they go together.
        most_known: runs that are given, at most.

    Returns:
        Of each run that is predicted from a known one of its stack: row, expected residual, and scale of the interval.
    """
    order = np.random.default_rng(0).permutation(len(residuals))
    rows, shifts, scales = list[int](), list[float](), list[float]()
    for known, other in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        by_stack: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place, chosen in enumerate((known[:most_known], other)):
            for row in chosen:
                by_stack[likeness[row].stack][place].append(int(row))
        for given, wanted in by_stack.values():
            if given and wanted:
                settings = [[likeness[row].setting for row in chosen] for chosen in (given, wanted)]
                shift, scale = sharing.krige(residuals[given], *settings)
                rows += wanted
                shifts += shift.tolist()
                scales += scale.tolist()
    return np.array(rows, dtype=int), np.array(shifts), np.array(scales)


def _shares(residuals: Vector, likeness: Sequence[Likeness]) -> tuple[float, float]:
    """Mean product of two residuals over their mean square: of another setting of a stack, and of the same setting."""
    stacks, settings = (np.array([getattr(each, name) for each in likeness]) for name in ("stack", "setting"))
    products = np.outer(residuals, residuals) / np.mean(residuals**2)
    same_setting = settings[:, None] == settings[None, :]
    others = (stacks[:, None] == stacks[None, :]) & ~same_setting
    same_setting &= ~np.eye(len(residuals), dtype=bool)
    return _mean(products[others]), _mean(products[same_setting])


def _mean(values: Vector) -> float:
    return float(values.mean()) if values.size else float("nan")
