"""How far compiled step times are from measured ones: fitted by ``scripts/verify_published`` on published TPU runs."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, median

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance, Quantity

_FILE = Path(__file__).parent / "calibration.json"


class CompiledCalibration(BaseModel):
    """One constant a chip generation, and what is left after it."""

    model_config = ConfigDict(frozen=True)

    constants: dict[str, float] = Field(description="by chip: ln(compiled / measured), as far as models agree on it")
    half_width: float = Field(
        gt=0, description="90 % quantile of |ln(compiled / measured)| of models that were left out"
    )
    runs: int = Field(ge=1, description="published runs with a compiled step time")
    source: str

    def calibrated(self, chip: str, compiled_s: float) -> Quantity | None:
        """A compiled step time without the constant of its chip; ``None`` for a chip that none was fitted for."""
        constant = self.constants.get(chip)
        if constant is None:
            return None
        value = compiled_s * math.exp(-constant)
        spread = math.exp(self.half_width)
        return Quantity(
            value=value, low=value / spread, high=value * spread, unit="s",
            provenance=Provenance.COMPILED, source=f"timeline with one constant a chip, fitted on {self.source}",
        )  # fmt: skip


def fit_constants(errors: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """One constant a chip from the errors ln(compiled / measured) of runs, by chip and model.

    Models of one chip differ by more than chance of a run, so the mean over models is trusted as far as chips differ by
    more than models do (random effects; DerSimonian and Laird, Controlled Clinical Trials 7, 1986): where they do not,
    the constants are nothing.
    """
    models = {chip: [median(found) for found in of_chip.values()] for chip, of_chip in errors.items() if of_chip}
    means = {chip: fmean(found) for chip, found in models.items()}
    freedom = sum(len(found) - 1 for found in models.values())
    if not freedom:
        return dict.fromkeys(models, 0.0)
    within = sum((m - means[chip]) ** 2 for chip, found in models.items() for m in found) / freedom
    by_chance = within * fmean(1 / len(found) for found in models.values())
    between = max(fmean(mean**2 for mean in means.values()) - by_chance, 0.0)
    shares = {chip: between / (between + within / len(found) or 1.0) for chip, found in models.items()}
    return {chip: share * means[chip] for chip, share in shares.items()}


@cache
def load_calibration() -> CompiledCalibration:
    """The calibration that comes with this version."""
    return CompiledCalibration.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))
