"""How far compiled step times are from measured ones: fitted by ``scripts/verify_published`` on published TPU runs.

One constant a chip generation, and one for slices: what is sent between them is hidden in the compiler's schedule, and
yet the measured step grows with every slice of the same work (docs/verify.md).
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance, Quantity

_FILE = Path(__file__).parent / "calibration.json"


class CompiledCalibration(BaseModel):
    """The constant of each chip, the growth of a step with slices, and what is left after both."""

    model_config = ConfigDict(frozen=True)

    growth: float = Field(description="ln of what each doubling of the slices adds to the measured step time")
    chips: dict[str, float] = Field(description="ln of measured over compiled step time on one slice, by chip")
    half_width: float = Field(
        gt=0, description="90 % quantile of |ln(calibrated / measured)| of models that were left out"
    )
    runs: int = Field(ge=1, description="published runs with a compiled step time")
    source: str

    def calibrated(self, chip: str, slices: int, compiled_s: float) -> Quantity | None:
        """A step time as runs of the chip lead to expect; ``None`` for a chip of which no run was compared."""
        if chip not in self.chips:
            return None
        value = compiled_s * math.exp(self.chips[chip] + self.growth * math.log2(slices))
        spread = math.exp(self.half_width)
        source = f"timeline, by a constant of {chip} and longer with each slice; {self.source}"
        return Quantity(
            value=value, low=value / spread, high=value * spread, unit="s",
            provenance=Provenance.COMPILED, source=source,
        )  # fmt: skip


def fit_growth(series: Sequence[Sequence[tuple[int, float]]]) -> float:
    """``ln`` of what a doubling of the slices adds, by least squares with a level for each series.

    Args:
        series: slices and measured step time (s) of runs that differ in nothing but slices, with equal work for each.
    """
    squares = products = 0.0
    for runs in series:
        doublings = np.log2([slices for slices, _ in runs])
        doublings -= doublings.mean()
        squares += float(doublings @ doublings)
        products += float(doublings @ np.log([seconds for _, seconds in runs]))
    return products / squares if squares else 0.0


def fit_chip(models: Iterable[Sequence[float]]) -> float:
    """The constant of a chip: the mean over its models of the mean ``ln(measured / compiled)`` of each one's runs."""
    return fmean(fmean(residuals) for residuals in models)


@cache
def load_calibration() -> CompiledCalibration:
    """The calibration that comes with this version."""
    return CompiledCalibration.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))
