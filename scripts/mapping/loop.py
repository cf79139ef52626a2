"""How many evaluations a search needs on the tables: predictions with repairs, and searches without.

Invalid programs count as evaluations. One that has been evaluated costs nothing the second time, for any search.
"""

import itertools
import math
import random
import statistics
import time
from contextlib import suppress

import numpy as np
from scipy.stats import kendalltau

from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.evidence.step_belief import Array
from asap.mapping.algorithm import ALGORITHMS
from asap.optimize.outcome import Configuration
from asap.optimize.proposers.mapping_prior import programs_apart
from asap.prediction.uncertainty.residual_kernel import ResidualKernel
from mapping.searches import (
    BUDGET,
    DoneError,
    Search,
    at_random,
    coordinate_descent,
    in_predicted_order,
    nevergrad_search,
    opentuner_search,
    optuna_search,
    predicted,
)
from mapping.table import TABLES, Table, decisions, meaning

SEEDS, FEW, NEAR = 20, 10, 1.01
HELD_OUT = ("circuit", "pennant")
"""Benchmarks that the predictions were not built on."""

SEARCHES: dict[str, Search] = {
    "predicted": predicted(),
    "in predicted order": in_predicted_order,
    "predicted, from the textbook": predicted(textbook=True),
    "random": at_random,
    "coordinate descent": coordinate_descent,
    "optuna TPE": optuna_search,
    "nevergrad (1+1)": nevergrad_search,
    "OpenTuner": opentuner_search,
}


def measure(table: Table, search: Search, legal: bool) -> dict[str, object]:
    """Evaluations to within 1 % of the optimum over the seeds, and the throughput after ten."""
    runs = [_run(table, search, seed, legal) for seed in range(SEEDS)]
    needed = sorted(run[0] for run in runs)
    few = [run[1] for run in runs]
    return {
        "to_1_percent_median": _finite(statistics.median(needed)), "to_1_percent_worst": _finite(needed[-1]),
        "missed": sum(math.isinf(each) for each in needed),
        "throughput_after_10_mean": round(statistics.mean(few), 3), "throughput_after_10_worst": round(min(few), 3),
    }  # fmt: skip


def _finite(count: float) -> float | None:
    return None if math.isinf(count) else count


def _run(table: Table, search: Search, seed: int, legal: bool) -> tuple[float, float]:
    seen: dict[frozenset[str], float | None] = {}
    best, reached, few, calls = math.inf, math.inf, 0.0, 0

    def evaluate(text: Configuration) -> float | None:
        nonlocal best, reached, few, calls
        key = meaning(text)
        calls += 1
        if key not in seen:
            seen[key] = table.outcome(text).step_time_s
            best = min(best, seen[key] or math.inf)
            if best <= NEAR * table.best:
                reached = min(reached, len(seen))
            if len(seen) <= FEW:
                few = table.best / best
        if len(seen) >= BUDGET or calls >= 3 * BUDGET or (math.isfinite(reached) and len(seen) >= FEW):
            raise DoneError
        return seen[key]

    with suppress(DoneError):
        search(table, evaluate, seed, legal)
    return reached, few


def describe(table: Table) -> dict[str, object]:
    """Shares of valid programs, and the textbook's mapper against the optimum."""
    draw = random.Random(0)
    options = table.space.options.values()
    raw = [table.space.text({key: draw.choice(o) for key, o in table.space.options.items()}) for _ in range(2000)]
    times = sorted(each.step_time_s or math.inf for each in table.outcomes.values())
    return {
        "raw_programs": math.prod(map(len, options)),
        "raw_valid_share": round(sum(map(table.legal, raw)) / len(raw), 3),
        "legal_programs": len(times),
        "optimum_us": round(table.best * 1e6, 1), "worst_over_best": round(times[-1] / table.best, 2),
        "textbook_over_best": round((table.outcome(table.textbook).step_time_s or math.inf) / table.best, 3),
        "best": next(text for text in table.programs if table.outcome(text).step_time_s == table.best),
    }  # fmt: skip


def mapping_loop(names: tuple[str, ...] = (), searches: tuple[str, ...] = ()) -> dict[str, object]:
    """Every search on every table, on the raw and on the legal space; packages that are missing are said."""
    found: dict[str, object] = {"seeds": SEEDS, "budget": BUDGET, "held_out": HELD_OUT}
    for name in names or tuple(each for each in ALGORITHMS if (TABLES / f"{each}.jsonl.gz").exists()):
        table = Table(name)
        rows: dict[str, object] = {}
        for title, search in SEARCHES.items():
            if searches and title not in searches:
                continue
            for legal in (False, True):
                try:
                    rows[f"{title}, {'legal' if legal else 'raw'}"] = measure(table, search, legal)
                except ModuleNotFoundError as error:
                    rows[title] = f"{error.name} is not installed"
        found[name] = {**describe(table), "searches": rows}
    return found


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
