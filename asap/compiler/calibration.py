"""How far compiled step times are from measured ones: fitted by ``scripts/verify_published`` on published TPU runs.

What is sent between slices is hidden in the compiler's schedule, and yet the measured step grows with every slice of
the same work. That growth is the one constant: a constant a chip generation besides brought models that were left out
no nearer, as models of one chip differ by as much as chips do (docs/verify.md).
"""

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance, Quantity

_FILE = Path(__file__).parent / "calibration.json"


class CompiledCalibration(BaseModel):
    """The growth of a step with slices, and what is left after it."""

    model_config = ConfigDict(frozen=True)

    growth: float = Field(description="ln of what each doubling of the slices adds to the measured step time")
    chips: tuple[str, ...] = Field(description="of which runs were compared")
    half_width: float = Field(
        gt=0, description="90 % quantile of |ln(calibrated / measured)| of models that were left out"
    )
    runs: int = Field(ge=1, description="published runs with a compiled step time")
    source: str

    def calibrated(self, chip: str, slices: int, compiled_s: float) -> Quantity | None:
        """A compiled step time with the growth of its slices; ``None`` for a chip of which no run was compared."""
        if chip not in self.chips:
            return None
        value = compiled_s * math.exp(self.growth * math.log2(slices))
        spread = math.exp(self.half_width)
        return Quantity(
            value=value, low=value / spread, high=value * spread, unit="s",
            provenance=Provenance.COMPILED, source=f"timeline, longer with each slice; {self.source}",
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


@cache
def load_calibration() -> CompiledCalibration:
    """The calibration that comes with this version."""
    return CompiledCalibration.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))
