"""What a team's own runs bring: half of each source's runs are given, the others predicted, before and after."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.fit.intervals import from_half
from asap.calibration.fit.predicted_runs import likeness_of
from asap.prediction.uncertainty.calibration import Fit

Vector = NDArray[np.float64]


class Narrowed(BaseModel):
    """Runs of one source, or the mean over sources, without and with own runs. Fractions."""

    model_config = ConfigDict(frozen=True)

    rows: int = Field(description="that were predicted from others of their chip and stack")
    error_before: float = Field(description="median of |measured / predicted - 1|")
    error_after: float
    half_width_before: float = Field(description="median half-width of the interval of ln(measured / predicted)")
    half_width_after: float
    coverage_before: float = Field(description="share inside the 90 % interval")
    coverage_after: float


class OwnRunsScore(BaseModel):
    """Over sources with at least two runs of one chip and stack; each is judged by a fit that never saw it."""

    model_config = ConfigDict(frozen=True)

    known: int = Field(description="runs that are given of a source, at most half of it")
    mean: Narrowed = Field(description="mean over sources")
    by_source: dict[str, Narrowed]


def score_own_runs(
    runs: Sequence[PublishedRun], fits: Sequence[Fit], residuals: Vector, widths: Vector, known: int
) -> OwnRunsScore | None:
    """Score the narrowing of intervals.

    Args:
        runs: timed ones.
        fits: of each run, all runs of a source by one.
        residuals: ln(measured / predicted) of the runs.
        widths: half-widths of their intervals.
        known: most runs that are given of a source.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, run in enumerate(runs):
        rows[run.source].append(row)
    scored = {
        name: _score([runs[row] for row in own], fits[own[0]], residuals[own], widths[own], known)
        for name, own in sorted(rows.items())
    }
    found = {name: score for name, score in scored.items() if score is not None}
    if not found:
        return None
    table = [score.model_dump(exclude={"rows"}) for score in found.values()]
    means = {name: round(float(np.mean([row[name] for row in table])), 4) for name in table[0]}
    mean = Narrowed(rows=sum(score.rows for score in found.values()), **means)
    return OwnRunsScore(known=known, mean=mean, by_source=found)


def _score(runs: Sequence[PublishedRun], fit: Fit, residuals: Vector, widths: Vector, known: int) -> Narrowed | None:
    rows, shift, scale = from_half(residuals / widths, list(map(likeness_of, runs)), fit.sharing, known)
    if not len(rows):
        return None
    before, width = residuals[rows], widths[rows]
    after, narrowed = before - shift * width, width * scale * fit.sharing.quantile
    return Narrowed(
        rows=len(rows),
        error_before=_median(np.abs(np.exp(-before) - 1)), error_after=_median(np.abs(np.exp(-after) - 1)),
        half_width_before=_median(width), half_width_after=_median(narrowed),
        coverage_before=round(float(np.mean(np.abs(before) <= width)), 4),
        coverage_after=round(float(np.mean(np.abs(after) <= narrowed)), 4),
    )  # fmt: skip


def _median(values: Vector) -> float:
    return round(float(np.median(values)), 4)
