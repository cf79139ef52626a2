"""How many evaluations a search needs on the tables of mapping programs: rules with feedback, and searches without.

Every search is blind to the table. Invalid programs count as evaluations. One that has been evaluated costs nothing the
second time, for any of them.
"""

import gzip
import json
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from asap.core.feedback import Feedback
from asap.core.provenance import Provenance
from asap.hardware import resolve_hardware
from asap.mapping.algorithm import ALGORITHMS, textbook_grid
from asap.mapping.algorithm_space import raw_space
from asap.mapping.check import check
from asap.mapping.language.format import format_decision
from asap.mapping.language.parse import parse
from asap.optimize.outcome import Configuration, Outcome, Try
from asap.optimize.proposers.mapping_rules import MappingRules, Use

TABLES = Path(__file__).parent.parent / "tests" / "data" / "mapping"
MACHINE = "v5e:4x4"
SEEDS, BUDGET, FEW, NEAR = 20, 150, 10, 1.01
HELD_OUT = ("circuit", "pennant")
"""Benchmarks that the rules were not written on."""

Evaluate = Callable[[Configuration], float | None]


class DoneError(Exception):
    """The budget is spent."""


class Table:
    """Programs of one algorithm with their outcome; what it does not hold is refused by the checks."""

    def __init__(self, name: str) -> None:
        lines = gzip.decompress((TABLES / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
        self.made_by, *rows = (json.loads(line) for line in lines)
        self.name, self.space, self.hardware = name, raw_space(name), resolve_hardware(MACHINE).slice
        self.outcomes = {
            meaning(row["program"]): Outcome(
                status=row["status"], step_time_s=row["seconds"], provenance=Provenance.COMPILED,
                feedback=tuple(Feedback(**each) for each in row["feedback"]),
            )
            for row in rows
        }  # fmt: skip
        self.programs = [row["program"] for row in rows]
        self.best = min(each.step_time_s or math.inf for each in self.outcomes.values())
        chosen = {key: options[0] for key, options in self.space.options.items()}
        grid = textbook_grid(name, self.hardware.devices, chosen.get("exchange", "")) or ()
        self.textbook = self.space.text({**chosen, "grid": f"({', '.join(map(str, grid))})"} | _stationary(chosen))
        self._refused: dict[frozenset[str], Outcome] = {}

    def outcome(self, text: Configuration) -> Outcome:
        key = meaning(text)
        if key not in self.outcomes:
            key = meaning(self._completed(text))
        if key in self.outcomes:
            return self.outcomes[key]
        if key not in self._refused:
            found = check(text, None, self.hardware).feedback
            assert found, f"not in the table: {text}"
            self._refused[key] = Outcome(status="rejected", provenance=Provenance.COMPILED, feedback=found)
        return self._refused[key]

    def _completed(self, text: Configuration) -> Configuration:
        """The program with the grid that holds where no line says one, as after some repairs."""
        exchange = next((line.split()[1] for line in text.splitlines() if line.startswith("exchange ")), "permute")
        grid = textbook_grid(self.name, self.hardware.devices, exchange) or ()
        return text if "grid (" in text else f"{text}\ngrid ({', '.join(map(str, grid))})"

    def legal(self, text: Configuration) -> bool:
        return self.outcome(text).status == "done"


def _stationary(chosen: Mapping[str, str]) -> dict[str, str]:
    return {"stationary": "C"} if "stationary" in chosen else {}


@cache
def _meaning(text: str) -> frozenset[str]:
    return frozenset(format_decision(decision) for decision in parse(text)[0].decisions)


def meaning(text: str) -> frozenset[str]:
    return _meaning(text)


def rules(use: Use, textbook: bool = False) -> Callable[[Table, Evaluate, int, bool], None]:
    """The loop's own proposer."""

    def run(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
        start = table.textbook if textbook else next(_random(table, seed, legal))
        allowed = table.legal if legal else lambda text: True
        proposer, tries = MappingRules(table.space, use=use, start=start, seed=seed, allowed=allowed), list[Try]()
        while (found := proposer.propose(tries)) is not None:
            outcome = table.outcome(found.configuration)
            tries.append(Try(number=len(tries) + 1, configuration=found.configuration, why=found.why, outcome=outcome))
            evaluate(found.configuration)
        raise DoneError

    return run


def at_random(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    for text in _random(table, seed, legal):
        evaluate(text)


def _random(table: Table, seed: int, legal: bool) -> Iterator[Configuration]:
    draw = random.Random(seed)
    while True:
        if legal:
            yield draw.choice(table.programs)
        else:
            yield table.space.text({key: draw.choice(options) for key, options in table.space.options.items()})


def coordinate_descent(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """One decision after the other, every option; from another program at random where nothing gets better."""
    draw = random.Random(seed)
    for start in _random(table, seed, legal):
        chosen = _choices(table, start)
        best = evaluate(start) or math.inf
        improved = True
        while improved:
            improved = False
            for key in draw.sample(list(table.space.options), len(table.space.options)):
                for option in draw.sample(table.space.options[key], len(table.space.options[key])):
                    text = table.space.text({**chosen, key: option})
                    if legal and not table.legal(text):
                        continue
                    seconds = evaluate(text) or math.inf
                    if seconds < best:
                        best, chosen, improved = seconds, {**chosen, key: option}, True


def _choices(table: Table, text: str) -> dict[str, str]:
    said = {
        line.rsplit(" ", 1)[0] if line.startswith("layout") else line.split(" ", 1)[0]: line
        for line in text.splitlines()
    }
    return {key: said[key].removeprefix(f"{key} ") for key in table.space.options}


def optuna_search(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """Tree-structured Parzen estimator, multivariate; of the legal space one list of grids, as all else is free."""
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True, warn_independent_sampling=False)
    study = optuna.create_study(sampler=sampler)
    options = _options(table, legal)
    while True:
        trial = study.ask()
        text = table.space.text({key: trial.suggest_categorical(key, list(values)) for key, values in options.items()})
        study.tell(trial, evaluate(text) or 1.0)


def nevergrad_search(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """The discrete (1+1) evolution strategy."""
    import nevergrad  # pyright: ignore[reportMissingImports]

    options = _options(table, legal)
    space = nevergrad.p.Dict(**{key: nevergrad.p.Choice(list(values)) for key, values in options.items()})
    space.random_state.seed(seed)
    search = nevergrad.optimizers.registry["DiscreteOnePlusOne"](parametrization=space, budget=BUDGET)
    while True:
        asked = search.ask()
        search.tell(asked, evaluate(table.space.text(asked.value)) or 1.0)


def _options(table: Table, legal: bool) -> dict[str, tuple[str, ...]]:
    if not legal:
        return dict(table.space.options)
    chosen = [_choices(table, text) for text in table.programs]
    return {key: tuple(dict.fromkeys(each[key] for each in chosen)) for key in table.space.options}


SEARCHES: dict[str, Callable[[Table, Evaluate, int, bool], None]] = {
    "rules, suggest": rules("suggest"),
    "rules, explain": rules("explain"),
    "rules, none": rules("none"),
    "rules, suggest, from the textbook": rules("suggest", textbook=True),
    "random": at_random,
    "coordinate descent": coordinate_descent,
    "optuna TPE": optuna_search,
    "nevergrad (1+1)": nevergrad_search,
}


def measure(table: Table, search: Callable[[Table, Evaluate, int, bool], None], legal: bool) -> dict[str, object]:
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


def _run(
    table: Table, search: Callable[[Table, Evaluate, int, bool], None], seed: int, legal: bool
) -> tuple[float, float]:
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
