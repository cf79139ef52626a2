"""``scripts/bench optimize``: evaluations until the best of a table is found, by us and by others on the same tables.

Ours needs no luck. Random search, optuna (TPE) and OpenTuner are given the legal configurations alone and have twenty
seeds. A table of compilations, and the small decoder as well, is searched from each of its configurations; the start
counts as an evaluation for everybody, and has one seed. A table that is not complete has no best, and is named, as are
packages that are not installed.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from statistics import fmean, median

import numpy as np

from asap.optimize.outcome import Configuration, Try
from asap.optimize.proposers.model_guided import ModelGuided
from optimization.compile_decoders import DECODERS, compiled, configurations
from optimization.published import sweeps
from optimization.rivals import Following, at_random, by_opentuner, by_optuna, untried
from optimization.tables import Table, compiled_table, measured_decoder

SEEDS = 20
WITHIN, WITHIN_COMPILED = 0.02, 0.01
"""Of a published best, and of a compiled one."""

Search = Callable[[Table, int], Following]


def benchmark() -> dict[str, object]:
    """Mean and worst number of evaluations over tables, starts and seeds."""
    published = list(sweeps())
    found: dict[str, object] = {"published_sweeps": {"tables": len(published), **_rivals(published, WITHIN, ALONE)}}
    decoder, noise = measured_decoder()
    found["small_decoder_on_cpu"] = {"noise": round(noise, 3), **_rivals([decoder], noise, _searches())}
    found["small_decoder_from_each_start"] = _from_each_start(decoder, noise)
    for name in DECODERS:
        missing = len(list(configurations(name))) - len(compiled(name))
        found[f"{name}_compiled"] = (
            f"{missing} to compile" if missing else _from_each_start(compiled_table(name), WITHIN_COMPILED)
        )
    if left_out := sorted(PACKAGES.keys() - _searches().keys()):
        found["not_installed"] = left_out
    return found


def _rivals(tables: list[Table], within: float, searches: Mapping[str, Search]) -> Mapping[str, object]:
    return {"configurations": sum(len(table.outcomes) for table in tables)} | {
        name: _score(
            evaluations(table, search(table, seed), within)
            for table in tables
            for seed in range(SEEDS if name in LUCKY else 1)
        )
        for name, search in searches.items()
    }


def _from_each_start(table: Table, within: float) -> Mapping[str, object]:
    starts = list(enumerate(table.seconds))
    return {"configurations": len(table.outcomes), "starts": len(starts)} | {
        name: _score(evaluations(table, _from(start, search(table, seed)), within) for seed, start in starts)
        for name, search in _searches().items()
    }


def _score(counts: Iterable[int]) -> dict[str, float]:
    found = list(counts)
    return {"mean": round(fmean(found), 2), "median": median(found), "worst": max(found)}


def evaluations(table: Table, following: Following, within: float) -> int:
    """How many until one is within a share of the best."""
    tries, good = list[Try](), min(table.seconds.values()) * (1 + within)
    while True:
        configuration = following(tries)
        outcome = table.outcomes[configuration]
        tries.append(Try(number=len(tries) + 1, configuration=configuration, why="", outcome=outcome))
        if table.seconds.get(configuration, np.inf) <= good:
            return len(tries)


def ours(table: Table, seed: int) -> Following:
    """The built-in proposer; where nothing is left that is likely to fit, the rest in order."""
    del seed
    proposer = ModelGuided(table.prior, table.kernel, table.memory, table.capacity)

    def following(tries: list[Try]) -> Configuration:
        suggestion = proposer.propose(tries)
        return suggestion.configuration if suggestion else next(untried(table.prior.configurations, tries))

    return following


def in_order(table: Table, seed: int) -> Following:
    """The model's order, whatever comes of it."""
    del seed
    order = [table.prior.configurations[place] for place in np.argsort(table.prior.log_time, kind="stable")]
    return lambda tries: next(untried(order, tries))


ALONE: dict[str, Search] = {"asap": ours, "order_of_the_model": in_order, "random": at_random}
PACKAGES: dict[str, Search] = {"optuna": by_optuna, "opentuner": by_opentuner}
"""Searches that need a package of that name; published sweeps are too many for them."""
LUCKY = ("random", *PACKAGES)


def _searches() -> dict[str, Search]:
    return ALONE | {name: search for name, search in PACKAGES.items() if find_spec(name)}


def _from(start: Configuration, following: Following) -> Following:
    return lambda tries: following(tries) if tries else start
