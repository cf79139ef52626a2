"""How well traces predict the tables: order and size, and the likeliest kernel of what is left."""

import itertools
import math
import time

import numpy as np
from scipy.stats import kendalltau

from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.evidence.step_belief import Array
from asap.mapping.algorithm import ALGORITHMS
from asap.optimize.proposers.mapping_prior import programs_apart
from asap.prediction.uncertainty.residual_kernel import ResidualKernel
from mapping.loop import HELD_OUT, NEAR
from mapping.table import Table, decisions

_REACHES, _OTHER_ORDERS = (0.25, 0.5, 1.0, 2.0), (0.01, 0.02, 0.05, 0.1)
_LEAST_NOISE = 1e-3


def mapping_predictions(names: tuple[str, ...] = tuple(ALGORITHMS)) -> dict[str, object]:
    """Each table against its predictions: Kendall's tau, the regret of the first, and the place of the optimum."""
    found: dict[str, object] = {"held_out": HELD_OUT}
    for name in names:
        table, began = Table(name), time.process_time()
        predictor = AlgorithmPredictor(table.hardware)
        log_time = np.array([math.log(predictor.seconds(text)) for text in table.programs])
        seconds = time.process_time() - began
        modelled = np.array([table.outcome(text).step_time_s for text in table.programs])
        order, residual = np.argsort(log_time, kind="stable"), np.log(modelled) - log_time
        tau: float = kendalltau(log_time, modelled)[0]  # pyright: ignore[reportAssignmentType]
        found[name] = {
            "programs": len(modelled), "cpu_seconds": round(seconds, 2),
            "kendall_tau": round(tau, 2),
            "first_over_best": round(float(modelled[order[0]]) / table.best, 3),
            "place_of_the_optimum": int(np.argmax(modelled[order] <= NEAR * table.best)) + 1,
            "residual_mean": round(float(residual.mean()), 3),
            "residual_deviation": round(float(residual.std()), 3),
        }  # fmt: skip
    return found


def mapping_kernel() -> dict[str, object]:
    """The likeliest kernel on the tables that are not held out, each with the same weight.

    The variance of each table is its own; the deviation is the root of their mean.
    """
    tables = [Table(name) for name in ALGORITHMS if name not in HELD_OUT]
    residuals = [_residuals(table) for table in tables]
    best = -math.inf, 0.0, 0.0, 0.0
    for other_order, reach in itertools.product(_OTHER_ORDERS, _REACHES):
        fits = [
            _likelihood(_among(table, reach, other_order), residual)
            for table, residual in zip(tables, residuals, strict=True)
        ]
        deviation = math.sqrt(sum(variance for _, variance in fits) / len(fits))
        best = max(best, (sum(likelihood for likelihood, _ in fits), deviation, reach, other_order))
    few = min(map(len, residuals))
    draw = np.random.default_rng(0)
    sampled = np.concatenate([draw.choice(np.abs(each), 100 * few) for each in residuals])
    return {
        "deviation": round(best[1], 3), "reach": best[2], "other_order": best[3],
        "limit": round(float(np.quantile(sampled, 0.9)), 3),
    }  # fmt: skip


def _residuals(table: Table) -> Array:
    modelled = [table.outcome(text).step_time_s or math.inf for text in table.prior.configurations]
    return np.log(modelled) - table.prior.log_time


def _among(table: Table, reach: float, other_order: float) -> Array:
    """Correlations of the residuals of all programs."""
    programs = [decisions(table.space, text) for text in table.prior.configurations]
    apart = programs_apart(programs, other_order)
    kernel = ResidualKernel(deviation=1.0, reach=reach)
    found = kernel.correlation(np.stack([apart(place) for place in range(len(programs))]))
    return found + _LEAST_NOISE * np.eye(len(programs))


def _likelihood(among: Array, residual: Array) -> tuple[float, float]:
    """Logarithm of the likelihood for each program, and the variance where it is largest."""
    variance = float(residual @ np.linalg.solve(among, residual)) / len(residual)
    return -0.5 * (math.log(variance) + np.linalg.slogdet(among)[1] / len(residual)), variance
