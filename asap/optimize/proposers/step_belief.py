"""Step times after what was measured: the model as prior, its residuals carried over to configurations near by.

Where residuals are larger or scatter more than published ones, the variance grows with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asap.optimize.proposers.prior import Array, Prior
from asap.optimize.results import Result
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT, ResidualKernel
from asap.proposals.selection.doubt import Z_90

_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class StepBelief:
    """Mean and standard deviation of ``ln(step time)`` of every configuration of a prior."""

    mean: Array
    deviation: Array


def believe(prior: Prior, kernel: ResidualKernel, found: Sequence[Result], apart: Sequence[Array]) -> StepBelief:
    """What to believe after measurements.

    Args:
        prior: the model's word.
        kernel: how residuals go together.
        found: what was measured, of configurations of the prior.
        apart: each of these and all configurations, as :attr:`Prior.apart` has it.
    """
    if not found:
        return StepBelief(prior.log_time, np.full(len(prior.log_time), np.hypot(kernel.deviation, kernel.own)))
    rows = [prior.index[result.configuration] for result in found]
    residuals = np.array([np.log(result.step_time_s) for result in found]) - prior.log_time[rows]
    typical = float(np.median(residuals))
    shift, unusual = kernel.common(typical), typical * Z_90 / kernel.limit
    rest = residuals - shift
    own = (kernel.own / kernel.deviation) ** 2
    to_all = kernel.correlation(np.stack(apart))
    to_all[np.arange(len(rows)), rows] += own
    noise = np.array([max(result.log_error, _LEAST_NOISE) for result in found])
    among = to_all[:, rows] + np.diag((noise / kernel.deviation) ** 2)
    solved = np.linalg.solve(among, np.column_stack([rest, to_all]))
    spread = (PRIOR_WEIGHT + unusual**2 + rest @ solved[:, 0] / kernel.deviation**2) / (PRIOR_WEIGHT + 1 + len(found))
    left = np.clip(1.0 + own - np.einsum("ij,ij->j", to_all, solved[:, 1:]), 0.0, 1.0 + own)
    deviation = kernel.deviation * np.sqrt(spread * left)
    return StepBelief(prior.log_time + shift + to_all.T @ solved[:, 0], deviation)
