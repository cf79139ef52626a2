"""A team's own measured runs narrow its predictions; what published runs of a team had in common is the prior.

The residuals of a team's runs, in half-widths of their intervals, are a Gaussian process: runs of one chip and stack
have a share of their variance in common, and runs that differ in their plan alone a larger one (kriging with nested
random effects: Cressie, *Statistics for Spatial Data*, section 3.2). Their size is learnt with an inverse-gamma prior
(Gelman et al., *Bayesian Data Analysis*, section 3.2). A conformal factor over published sources widens what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import format_percent
from asap.prediction.prediction import OWN_RUNS
from asap.prediction.uncertainty.own_runs import Likeness, OwnRun
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT


@dataclass(frozen=True)
class Narrowing:
    """What own runs say of a prediction.

    Args:
        runs: of the same chip and stack; 0 where own runs cannot be used.
        shift: of ``ln(step time)``, in half-widths of the interval.
        scale: of the interval's width.
    """

    runs: int
    shift: float = 0.0
    scale: float = 1.0

    @property
    def note(self) -> str:
        """What was done, in words."""
        if not self.runs:
            return f"{OWN_RUNS}not used, from another calibration; asap accuracy calibrate --with adds them again"
        change = f"{format_percent(abs(self.scale - 1), 0)} {'narrower' if self.scale < 1 else 'wider'}"
        return f"{OWN_RUNS}{self.runs} of this chip and stack correct the prediction; its interval is {change}"

    @property
    def source(self) -> str:
        """What is added to the source of a figure."""
        return f", {'narrowed' if self.scale < 1 else 'corrected'} by {self.runs} of your runs" if self.runs else ""


class Sharing(BaseModel):
    """How residuals of one team go together, in published runs.

    Both shares are of the variance of a residual in half-widths.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stack: float = Field(default=0.0, ge=0, le=1, description="that runs of one chip and stack have in common")
    setting: float = Field(default=0.0, ge=0, le=1, description="that runs have in common which differ in their plan")
    mean_square: float = Field(default=1.0, gt=0, description="of residuals")
    quantile: float = Field(default=1.0, gt=0, description="of |what is left| over the width expected of it")

    def narrowing(self, wanted: Likeness, known: Sequence[OwnRun]) -> Narrowing | None:
        """What own runs say of a run; ``None`` where none is of its chip and stack."""
        alike = [run for run in known if run.stack == wanted.stack]
        if not alike:
            return None
        residuals = np.array([run.residual for run in alike])
        shift, scale = self.krige(residuals, [run.setting for run in alike], [wanted.setting])
        return Narrowing(len(alike), float(shift[0]), self.quantile * float(scale[0]))

    def krige(
        self, residuals: NDArray[np.float64], settings: Sequence[str], wanted: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Expected residuals of further runs of a stack, and what is left of the interval's width.

        Args:
            residuals: of known runs of the stack, in half-widths, of shape (known,).
            settings: of the known runs.
            wanted: of the further runs.
        """
        own, other = np.array(settings), np.array(wanted)
        among = self._common(own, own) + np.eye(len(own)) * (1 - self.setting)
        to_own = self._common(other, own)
        weights = np.linalg.solve(among, to_own.T).T
        found = residuals @ np.linalg.solve(among, residuals) / self.mean_square
        left = np.clip(1 - np.einsum("ij,ij->i", weights, to_own), 0.0, 1.0)
        return weights @ residuals, np.sqrt(left * (PRIOR_WEIGHT + found) / (PRIOR_WEIGHT + len(own)))

    def _common(self, some: NDArray[np.str_], others: NDArray[np.str_]) -> NDArray[np.float64]:
        return self.stack + (self.setting - self.stack) * (some[:, None] == others[None, :])
