"""``scripts/bench optimize``: evaluations until the best of a table is found, by us and by others on the same tables.

Ours needs no luck. Random search and optuna (TPE over degrees and settings) are given the legal configurations alone
and have twenty seeds. A table of compilations is searched from each of its configurations; the start counts as an
evaluation for everybody, and has one seed. Without optuna it is left out and named.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from statistics import fmean

import numpy as np

from asap.optimize.outcome import Configuration, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import AXES, Plan
from optimization.compile_decoders import DECODERS, compiled, configurations
from optimization.published import sweeps
from optimization.tables import Table, compiled_table, measured_decoder

SEEDS = 20
WITHIN, WITHIN_COMPILED = 0.02, 0.01
"""Of a published best, and of a compiled one."""

Following = Callable[[list[Try]], Configuration]
Search = Callable[[Table, int], Following]


def benchmark() -> dict[str, object]:
    """Mean and worst number of evaluations over tables, starts and seeds."""
    published = list(sweeps())
    found: dict[str, object] = {"published_sweeps": {"tables": len(published), **_rivals(published, WITHIN)}}
    decoder, noise = measured_decoder()
    found["small_decoder_on_cpu"] = {"noise": round(noise, 3), **_rivals([decoder], noise)}
    for name in DECODERS:
        missing = len(list(configurations(name))) - len(compiled(name))
        found[f"{name}_compiled"] = f"{missing} to compile" if missing else _from_each_start(compiled_table(name))
    if find_spec("optuna") is None:
        found["left_out"] = "optuna is not installed"
    return found


def _rivals(tables: list[Table], within: float) -> Mapping[str, object]:
    return {"configurations": sum(len(table.outcomes) for table in tables)} | {
        name: _score(
            evaluations(table, search(table, seed), within)
            for table in tables
            for seed in range(SEEDS if name in LUCKY else 1)
        )
        for name, search in _searches().items()
    }


def _from_each_start(table: Table) -> Mapping[str, object]:
    starts = list(enumerate(table.seconds))
    return {"configurations": len(table.outcomes), "starts": len(starts)} | {
        name: _score(evaluations(table, _from(start, search(table, seed)), WITHIN_COMPILED) for seed, start in starts)
        for name, search in _searches().items()
    }


def _score(counts: Iterable[int]) -> dict[str, float]:
    found = list(counts)
    return {"mean": round(fmean(found), 2), "worst": max(found)}


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
        return suggestion.configuration if suggestion else next(_untried(table.prior.configurations, tries))

    return following


def in_order(table: Table, seed: int) -> Following:
    """The model's order, whatever comes of it."""
    del seed
    order = [table.prior.configurations[place] for place in np.argsort(table.prior.log_time, kind="stable")]
    return lambda tries: next(_untried(order, tries))


def at_random(table: Table, seed: int) -> Following:
    """Legal configurations in random order, none twice."""
    order = np.random.default_rng(seed).permutation(table.prior.configurations).tolist()
    return lambda tries: next(_untried(order, tries))


def by_optuna(table: Table, seed: int) -> Following:
    """TPE over degrees and settings; what is not in the table costs nothing and is told to be bad."""
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    by_words = {_words(Plan.parse(text)): text for text in table.prior.configurations}
    choices = [sorted({words[n] for words in by_words}) for n in range(len(next(iter(by_words))))]
    space = {str(n): optuna.distributions.CategoricalDistribution(options) for n, options in enumerate(choices)}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=3))
    bad = 10 * max(table.seconds.values())

    def tell(configuration: Configuration) -> None:
        words = dict(zip(space, _words(Plan.parse(configuration)), strict=True))
        value = table.seconds.get(configuration, bad)
        study.add_trial(optuna.trial.create_trial(params=words, distributions=space, value=value))

    def following(tries: list[Try]) -> Configuration:
        if tries:
            tell(tries[-1].configuration)
        done = {each.configuration for each in tries}
        for _ in range(MOST_ASKED):
            trial = study.ask(space)
            text = by_words.get(tuple(trial.params.values()))
            if text is not None and text not in done:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)  # told with its value once it is evaluated
                return text
            study.tell(trial, table.seconds.get(text or "", bad))
        return next(_untried(table.prior.configurations, tries))

    return following


SEARCHES: dict[str, Search] = {
    "asap": ours,
    "order_of_the_model": in_order,
    "random": at_random,
    "optuna": by_optuna,
}
LUCKY = ("random", "optuna")
MOST_ASKED = 200


def _searches() -> dict[str, Search]:
    return {name: search for name, search in SEARCHES.items() if name != "optuna" or find_spec("optuna")}


def _from(start: Configuration, following: Following) -> Following:
    return lambda tries: following(tries) if tries else start


def _untried(order: Iterable[Configuration], tries: list[Try]) -> Iterator[Configuration]:
    done = {each.configuration for each in tries}
    return (configuration for configuration in order if configuration not in done)


def _words(plan: Plan) -> tuple[str, ...]:
    settings = (plan.microbatches, plan.pipeline_repeats, plan.remat.value if plan.remat else None, plan.offload)
    return (*(str(plan.degree(axis)) for axis in AXES), *map(str, settings), str(plan.loss_chunks))
