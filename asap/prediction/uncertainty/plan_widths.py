"""How far a plan may lie from its prediction, where it is predicted from another plan."""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field


class Widths(BaseModel):
    """Half-widths of the 90 % interval of ln(measured / predicted): their square grows with the doublings between two
    plans, as that of a random walk grows with its steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    doubling: float = Field(ge=0, description="half-width at one doubling")

    def at(self, distance: float) -> float:
        """The half-width at so many doublings (:func:`plan_distance`)."""
        return self.doubling * math.sqrt(distance)

    def at_each(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The half-widths at many distances."""
        return self.doubling * np.sqrt(distance)


class PlanWidths(BaseModel):
    """Of dense models, and of mixtures of experts, whose plans are harder to tell apart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dense: Widths
    mixture: Widths

    def of(self, mixture: bool) -> Widths:
        """Those of one model."""
        return self.mixture if mixture else self.dense
