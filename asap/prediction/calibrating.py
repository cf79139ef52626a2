"""From development runs to a Calibration: the full fit, a fit without each source, and what the left-out runs taught.

Residuals that shape intervals are always of runs whose source was left out of the fit; the fit that is used on a
development source has also been kept from the residuals of that source.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asap.prediction.calibration import Calibration, Fit, Region, Widths
from asap.prediction.carrying import carry_of, common_size
from asap.prediction.case import Case
from asap.prediction.compute import model_flops
from asap.prediction.fitting import Regression
from asap.prediction.intervals import fair_level, widths_of
from asap.prediction.judged import groups_of, judge_each, stacked
from asap.prediction.pairs import pairs_of
from asap.prediction.region import region_of
from asap.prediction.reserving import reserves_of
from asap.prediction.runs import Run
from asap.prediction.scorecard import macro_median
from asap.prediction.what_if import Carry

STEP_EDGES = (0.05, 0.75, 1.5)
WHAT_IF_EDGES = (0.6, 1.6, 3.1)
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


def calibrate(runs: Sequence[Run], date: str) -> Calibration:
    """Fit everything.

    Args:
        runs: development runs that say what they recompute; timed ones, and those that died of memory.
        date: of the calibration, ISO.
    """
    timed = [run for run in runs if run.step_time is not None]
    sources = np.array([run.source for run in timed])
    case = stacked(timed)
    regression = Regression(case, [groups_of(run) for run in timed], sources.tolist(), _times(timed))
    everything = regression.fit(np.ones(len(timed), dtype=bool))
    full = _fit(regression, everything, timed, case, np.ones(len(timed), dtype=bool))
    names = sorted(set(sources.tolist()))
    without = {}
    for name in names:
        use = sources != name
        without[name] = _fit(regression, regression.fit(use, start=everything), timed, case, use)
    return _with_residuals(runs, [run for run in timed if not run.by_flops], full, without, date)


def _times(timed: Sequence[Run]) -> list[float]:
    return [run.step_time or 0.0 for run in timed]


def _fit(regression: Regression, theta: NDArray[np.float64], timed: Sequence[Run], case: Case, use: Mask) -> Fit:
    chosen = [run for run, used in zip(timed, use, strict=True) if used]
    nothing = Widths(edges=(), half_widths=(0.0,))
    return Fit(
        constants=regression.constants(theta),
        region=_rounded(region_of(stacked(chosen), [groups_of(run) for run in chosen])),
        step_widths=nothing,
        what_if_widths=nothing,
        ratio_widths=nothing,
        reserves={},
    )


def _rounded(region: Region) -> Region:
    low = {name: round(value, 4) for name, value in region.low.items()}
    high = {name: round(value, 4) for name, value in region.high.items()}
    return region.model_copy(update={"low": low, "high": high})


def _with_residuals(
    runs: Sequence[Run], timed: Sequence[Run], full: Fit, without: dict[str, Fit], date: str
) -> Calibration:
    sources = np.array([run.source for run in timed])
    verdict = judge_each(timed, [without[run.source] for run in timed])
    errors = np.log(np.array(_times(timed)) / verdict.step_time)
    level = fair_level(errors, verdict.distance, sources.tolist(), STEP_EDGES)
    pairs = pairs_of(timed)
    known, other, moved, pair_sources = errors[pairs.known], errors[pairs.other], pairs.distance, sources[pairs.known]

    def carried(use: Mask, limit: float) -> Carry:
        return carry_of(known[use], other[use], moved[use], pair_sources[use].tolist(), WHAT_IF_EDGES, limit)

    def surprise(carry: Carry) -> Vector:
        return other - carry.of(known, moved)

    everywhere = np.ones(len(moved), dtype=bool)
    changes = surprise(carried(everywhere, common_size(errors, sources.tolist())))
    pair_level = fair_level(changes, moved, pair_sources.tolist(), WHAT_IF_EDGES)
    ratio_level = fair_level(other - known, moved, pair_sources.tolist(), WHAT_IF_EDGES)

    def learnt(fit: Fit, name: str | None) -> Fit:
        rows, between = sources != name, pair_sources != name
        carry = carried(between, common_size(errors[rows], sources[rows].tolist()))

        def widths(residuals: Vector, level: float) -> Widths:
            return widths_of(residuals[between], moved[between], pair_sources[between].tolist(), WHAT_IF_EDGES, level)

        return fit.model_copy(
            update={
                "step_widths": widths_of(
                    errors[rows], verdict.distance[rows], sources[rows].tolist(), STEP_EDGES, level
                ),
                "carry": carry,
                "what_if_widths": widths(surprise(carry), pair_level),
                "ratio_widths": widths(other - known, ratio_level),
                "reserves": reserves_of([run for run in runs if run.source != name]),
            }
        )

    misses = np.abs(np.exp(-errors) - 1)
    return Calibration(
        date=date,
        rows=dict(sorted(Counter(sources.tolist()).items())),
        error={
            "macro_median_ape": round(macro_median(misses, sources.tolist()), 4),
            "median_ape": round(float(np.median(misses)), 4),
            "p90_ape": round(float(np.quantile(misses, 0.9)), 4),
        },
        full=learnt(full, None),
        without={name: learnt(fit, name) for name, fit in without.items()},
        utilisation=_utilisation(timed),
    )


def _utilisation(timed: Sequence[Run]) -> dict[str, dict[str, float]]:
    case = stacked(timed)
    devices = np.array([run.hardware.devices for run in timed])
    values = model_flops(case) / (devices * case.machine.peak_matmul * np.array(_times(timed)))
    table: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run, value in zip(timed, np.asarray(values), strict=True):
        table[run.chip][run.source].append(float(value))
    return {
        chip: {source: round(float(np.median(found)), 4) for source, found in sorted(by_source.items())}
        for chip, by_source in sorted(table.items())
    }
