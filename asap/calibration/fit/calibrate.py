"""From development runs to a Calibration: the full fit, a fit without each source, and their intervals.

Intervals come only from residuals of runs whose source was left out of the fit. A fit without a source does not use
the residuals of that source either.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import UNFITTED, FirstLook, as_first_seen, pairs_of
from asap.calibration.fit.intervals import NO_WIDTHS, fit_plan_widths, fit_sharing, fit_step_interval, macro_median
from asap.calibration.fit.memory_overheads import fit_allocator_overheads
from asap.calibration.fit.predicted_runs import (
    PredictedRuns,
    change_of_pairs,
    groups_of,
    likeness_of,
    predict_each,
    stacked,
)
from asap.calibration.fit.regression import Regression
from asap.calibration.fit.residual_kernel import (
    START,
    common_size,
    fit_residual_kernels,
    fit_residual_transfer,
    residual_groups,
)
from asap.prediction.step_model.compute import model_flops
from asap.prediction.uncertainty.calibration import Calibration, Constant, Fit, Region, region_of
from asap.prediction.uncertainty.own_runs import Sharing
from asap.prediction.uncertainty.step_interval import StepInterval

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


def calibrate(
    runs: Sequence[PublishedRun], date: str, start: Mapping[str, Constant], looks: Mapping[str, FirstLook]
) -> Calibration:
    """Fit everything.

    Args:
        runs: development runs with a rematerialisation policy: timed ones, and those that ran out of memory.
        date: of the calibration, ISO.
        start: constants near which to search: the loss has several minima.
        looks: what was predicted of runs when their source was first seen; intervals are made from these.
    """
    timed = [run for run in runs if run.step_time is not None]
    sources, fitted = np.array([run.source for run in timed]), np.array([run.source not in UNFITTED for run in timed])
    regression = Regression(stacked(timed), [groups_of(run) for run in timed], sources.tolist(), _times(timed))
    everything = regression.fit(fitted, start=regression.terms_of(start))
    full = _fit(regression, everything, timed, fitted)
    without = {}
    for name in sorted(set(sources.tolist())):
        use = fitted & (sources != name)
        theta = everything if name in UNFITTED else regression.fit(use, start=everything)
        without[name] = _fit(regression, theta, timed, use)
    return _fit_residuals(runs, timed, full, without, date, looks)


def refit_residuals(
    calibration: Calibration, runs: Sequence[PublishedRun], looks: Mapping[str, FirstLook]
) -> Calibration:
    """A calibration that keeps its constants, with all that is fitted to residuals fitted anew.

    Args:
        calibration: keeps its constants and date.
        runs: as for :func:`calibrate`.
        looks: as for :func:`calibrate`.
    """
    timed = [run for run in runs if run.step_time is not None]
    fitted = [run for run in timed if run.source not in UNFITTED]
    full = calibration.full.model_copy(update={"region": _region(fitted)})
    without = {
        name: fit.model_copy(update={"region": _region([run for run in fitted if run.source != name])})
        for name, fit in calibration.without.items()
    }
    return _fit_residuals(runs, timed, full, without, calibration.date, looks)


def _sharing(
    timed: Sequence[PublishedRun], errors: Vector, predicted: PredictedRuns, interval: StepInterval, use: Mask
) -> Sharing:
    widths = interval.at_each({name: value[use] for name, value in predicted.doubts.items()})
    chosen = [run for run, used in zip(timed, use, strict=True) if used]
    return fit_sharing(errors[use] / widths, list(map(likeness_of, chosen)), [run.source for run in chosen])


def _times(timed: Sequence[PublishedRun]) -> list[float]:
    return [run.step_time or 0.0 for run in timed]


def _fit(regression: Regression, theta: NDArray[np.float64], timed: Sequence[PublishedRun], use: Mask) -> Fit:
    chosen = [run for run, used in zip(timed, use, strict=True) if used]
    return Fit(
        constants=regression.constants(theta),
        region=_region(chosen),
        step_interval=StepInterval(spreads={}),
        residual_kernel=START,
        anchored_widths=NO_WIDTHS,
        ratio_widths=NO_WIDTHS,
        allocator_overheads={},
    )


def _region(runs: Sequence[PublishedRun]) -> Region:
    region = region_of(stacked(runs), map(groups_of, runs), [run.architecture.is_moe for run in runs])
    low = {name: round(value, 4) for name, value in region.low.items()}
    high = {name: round(value, 4) for name, value in region.high.items()}
    return region.model_copy(update={"low": low, "high": high})


def _fit_residuals(
    runs: Sequence[PublishedRun],
    timed: Sequence[PublishedRun],
    full: Fit,
    without: dict[str, Fit],
    date: str,
    looks: Mapping[str, FirstLook],
) -> Calibration:
    sources, measured = np.array([run.source for run in timed]), np.log(_times(timed))
    predicted = predict_each(timed, [without[run.source] for run in timed])
    errors, missed = measured - np.log(predicted.step_time), measured - np.log(predicted.likeliest)
    first_errors, first_doubts = as_first_seen(timed, errors, predicted.doubts, looks)
    pairs = pairs_of(timed)
    known, other = missed[pairs.known], missed[pairs.other]
    pair_sources = sources[pairs.known]
    change, moved = (change_of_pairs(timed, predicted.parts, pairs, recomputed) for recomputed in (True, False))
    mixture = np.array([float(timed[index].architecture.is_moe) for index in pairs.known])
    kernels = fit_residual_kernels(residual_groups(timed, missed, predicted.parts))

    def add_uncertainty(fit: Fit, name: str | None) -> Fit:
        rows, between = sources != name, pair_sources != name
        names, changes = pair_sources[between].tolist(), change[between]
        limit = common_size(missed[rows], sources[rows].tolist())
        transfer = fit_residual_transfer(known[between], other[between], moved[between], names, limit)
        remaining = other[between] - transfer.expected(known[between], moved[between])
        doubts = {doubt: value[rows] for doubt, value in first_doubts.items()}
        interval = fit_step_interval(first_errors[rows], doubts, sources[rows].tolist())
        return fit.model_copy(
            update={
                "step_interval": interval,
                "sharing": _sharing(timed, errors, predicted, interval, rows),
                "residual_transfer": transfer,
                "residual_kernel": kernels.get(name, kernels[None]).model_copy(update={"limit": limit}),
                "anchored_widths": fit_plan_widths(remaining, changes, mixture[between], names),
                "ratio_widths": fit_plan_widths((other - known)[between], changes, mixture[between], names),
                "allocator_overheads": fit_allocator_overheads([run for run in runs if run.source != name]),
            }
        )

    return Calibration(
        date=date,
        rows=dict(sorted(Counter(sources.tolist()).items())),
        error=error_of(errors, sources.tolist()),
        full=add_uncertainty(full, None),
        without={name: add_uncertainty(fit, name) for name, fit in without.items()},
        utilisation=_utilisation(timed),
    )


def error_of(residuals: Vector, sources: Sequence[str]) -> dict[str, float]:
    """Absolute percentage errors, from ln(measured / predicted)."""
    misses = np.abs(np.exp(-residuals) - 1)
    return {
        "macro_median_ape": round(macro_median(misses, sources), 4),
        "median_ape": round(float(np.median(misses)), 4),
        "p90_ape": round(float(np.quantile(misses, 0.9)), 4),
    }


def _utilisation(timed: Sequence[PublishedRun]) -> dict[str, dict[str, float]]:
    inputs = stacked(timed)
    devices = np.array([run.hardware.devices for run in timed])
    values = model_flops(inputs) / (devices * inputs.hardware.peak_matmul * np.array(_times(timed)))
    table: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run, value in zip(timed, np.asarray(values), strict=True):
        table[run.chip][run.source].append(float(value))
    return {
        chip: {source: round(float(np.median(found)), 4) for source, found in sorted(by_source.items())}
        for chip, by_source in sorted(table.items())
    }
