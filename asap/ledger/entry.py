"""A prediction of an earlier session, and its outcome."""

import math
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.plans import Plan


class Outcome(BaseModel):
    """What came of a plan: a step time, or whether it fits."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None = None
    ratio: float | None = Field(default=None, description="step time over that of the plan that ran before")
    fits: bool | None = None
    words: str = Field(description="as it was stated, or where it was measured")


class Entry(BaseModel):
    """One prediction: seconds with a 90 % interval, or a ratio where no step time was predicted."""

    model_config = ConfigDict(frozen=True)

    session: str
    time: datetime
    experiment: str
    plan: Plan
    method: str
    unit: Literal["s", "fraction"]
    predicted: float
    low: float
    high: float
    fits: bool | None = Field(description="whether it was predicted to fit into HBM")
    outcome: Outcome | None = None

    @property
    def measured(self) -> float | None:
        """The outcome in the unit of the prediction."""
        if self.outcome is None:
            return None
        return self.outcome.step_time_s if self.unit == "s" else self.outcome.ratio

    @property
    def inside(self) -> bool | None:
        """Whether the measurement lies in the interval."""
        return None if self.measured is None else self.low <= self.measured <= self.high

    @property
    def error(self) -> float | None:
        """``ln(measured / predicted)``."""
        return None if not self.measured else math.log(self.measured / self.predicted)

    @property
    def right_about_memory(self) -> bool | None:
        """Whether the verdict on memory was right, where both are known."""
        if self.outcome is None or self.outcome.fits is None or self.fits is None:
            return None
        return self.fits == self.outcome.fits
