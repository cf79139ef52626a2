"""Ratio of measured to compiled step time: fitted by ``scripts/verify_published`` on published TPU runs.

A factor per chip generation, and one per doubling of the slices: the schedule hides all traffic between slices, yet the
measured step grows with every slice of the same work (docs/verify-measurements.md).
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Provenance, Quantity

_FILE, _LEAST_EFFORT = (Path(__file__).parent / name for name in ("calibration.json", "least_effort.json"))


class CompiledCalibration(BaseModel):
    """A factor per chip, a factor per doubling of the slices, and the error that is left. All are ln of ratios."""

    model_config = ConfigDict(frozen=True)

    log_growth: float = Field(description="ln of the growth of the measured step with each doubling of the slices")
    log_factors: dict[str, float] = Field(description="ln of measured over compiled step time on one slice, by chip")
    log_half_width: float = Field(gt=0, description="90 % quantile of |ln(calibrated / measured)| on held-out models")
    runs: int = Field(ge=1, description="published runs with a compiled step time")
    source: str

    def calibrated(self, chip: str, slices: int, compiled_s: float) -> Quantity | None:
        """The step time (s) expected of a real run; ``None`` for a chip without published runs."""
        if chip not in self.log_factors:
            return None
        value = compiled_s * math.exp(self.log_factors[chip] + self.log_growth * math.log2(slices))
        half_width = math.exp(self.log_half_width)
        source = f"compiled, times factors for {chip} and for slices fitted on {self.source}"
        return Quantity(
            value=value, low=value / half_width, high=value * half_width, unit="s",
            provenance=Provenance.COMPILED, source=source,
        )  # fmt: skip


def fit_log_growth(series: Sequence[Sequence[tuple[int, float]]]) -> float:
    """``ln`` of the growth with each doubling of the slices, by least squares with an intercept per series.

    Args:
        series: slices and measured step time (s) of runs that differ only in slices, with equal work per slice.
    """
    squares = products = 0.0
    for runs in series:
        doublings = np.log2([slices for slices, _ in runs])
        doublings -= doublings.mean()
        squares += float(doublings @ doublings)
        products += float(doublings @ np.log([seconds for _, seconds in runs]))
    return products / squares if squares else 0.0


def fit_log_factor(models: Iterable[Sequence[float]]) -> float:
    """``ln`` of a chip's factor: the mean over its models of their mean ``ln(measured / compiled)``."""
    return fmean(fmean(residuals) for residuals in models)


@cache
def load_calibration() -> CompiledCalibration:
    """The calibration that comes with this version."""
    return CompiledCalibration.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))


class EffortMargin(BaseModel):
    """HBM of full effort over that of least effort: its median and 10 % and 90 % quantiles."""

    model_config = ConfigDict(frozen=True)

    low: float = Field(gt=0)
    median: float = Field(gt=0)
    high: float = Field(gt=0)
    plans: int = Field(ge=1, description="compiled with both")
    source: str


@cache
def effort_margin(optimizer_on_host: bool) -> EffortMargin:
    """What a plan compiled with least effort needs more with full effort, by ``scripts/compiled_tables.py``."""
    found = json.loads(_LEAST_EFFORT.read_text(encoding="utf-8"))
    return EffortMargin.model_validate(found["optimizer_on_host" if optimizer_on_host else "optimizer_in_hbm"])
