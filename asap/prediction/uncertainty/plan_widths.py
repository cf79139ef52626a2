"""How far a plan may lie from its prediction, where it is predicted from another plan."""

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field


class Widths(BaseModel):
    """Half-widths of the 90 % interval of ln(measured / predicted): their square grows with how much of the step
    changes, as that of a random walk grows with its steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    least: float = Field(ge=0, description="half-width where no part of the step changes: steps vary")
    whole: float = Field(ge=0, description="what is added to it where as much changes as the shorter step takes")

    def at(self, change: float) -> float:
        """The half-width where so much changes (:func:`change_between`)."""
        return float(self.at_each(np.asarray(change)))

    def at_each(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """The half-widths of many."""
        return np.sqrt(self.least**2 + self.whole**2 * change)


class PlanWidths(BaseModel):
    """Of dense models, and of mixtures of experts, whose plans are harder to tell apart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dense: Widths
    mixture: Widths

    def of(self, mixture: bool) -> Widths:
        """Those of one model."""
        return self.mixture if mixture else self.dense
