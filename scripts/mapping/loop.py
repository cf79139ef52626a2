"""How many evaluations a search needs on the tables: predictions with repairs, and searches without.

Invalid programs count as evaluations. One that has been evaluated costs nothing the second time, for any search.
"""

import math
import random
import statistics
from contextlib import suppress

from asap.mapping.algorithm import ALGORITHMS
from asap.optimize.outcome import Configuration
from mapping.peers import BUDGET, nevergrad_search, opentuner_search, optuna_search
from mapping.searches import DoneError, Search, at_random, coordinate_descent, in_predicted_order, predicted
from mapping.table import TABLES, Table, meaning

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
