"""How far compiled step times are from measured ones: fitted by ``scripts/verify_published`` on published TPU runs."""

import json
import math
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance, Quantity

_FILE = Path(__file__).parent / "calibration.json"


class CompiledCalibration(BaseModel):
    """One constant a chip generation, and what is left after it."""

    model_config = ConfigDict(frozen=True)

    constants: dict[str, float] = Field(description="by chip: median ln(compiled / measured)")
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


@cache
def load_calibration() -> CompiledCalibration:
    """The calibration that comes with this version."""
    return CompiledCalibration.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))
