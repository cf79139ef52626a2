"""``scripts/measure bench optimize``: evaluations until the best of a table is found, by us and by others.

Ours needs no luck. Random search, optuna (TPE) and OpenTuner are given the legal configurations alone and have twenty
seeds. A table of compilations, and the small decoder as well, is searched from each of its configurations; the start
counts as an evaluation for everybody, and has one seed. A table that is not complete has no best, and is named, as are
packages that are not installed.
"""

import random
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir
from importlib.util import find_spec
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

from asap.optimize.outcome import Configuration, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import AXES, Plan
from optimization.decoders import DECODERS, compiled, configurations
from optimization.tables import Table, compiled_table, measured_decoder, sweeps

Following = Callable[[list[Try]], Configuration]
"""The next configuration after these tries."""
Words = tuple[str, ...]
MOST_ASKED = 200
"""Proposals outside of a table after which its next configuration is taken."""
BAD = 10.0
"""What a configuration that does not run is told to take, in worst steps of the table."""


def at_random(table: Table, seed: int) -> Following:
    """Legal configurations in random order, none twice."""
    order = np.random.default_rng(seed).permutation(table.prior.configurations).tolist()
    return lambda tries: next(untried(order, tries))


def by_optuna(table: Table, seed: int) -> Following:
    """TPE over degrees and settings; what is not in the table costs nothing and is told to be bad."""
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    by_words = _by_words(table)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        str(n): optuna.distributions.CategoricalDistribution(options) for n, options in enumerate(_options(by_words))
    }
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=3))

    def tell(configuration: Configuration) -> None:
        words = dict(zip(space, _words(Plan.parse(configuration)), strict=True))
        trial = optuna.trial.create_trial(params=words, distributions=space, value=_seconds(table, configuration))
        study.add_trial(trial)

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
            study.tell(trial, _seconds(table, text))
        return next(untried(table.prior.configurations, tries))

    return following


def by_opentuner(table: Table, seed: int) -> Following:
    """OpenTuner's bandit over its techniques; what is not in the table costs nothing and is told to fail."""
    import opentuner  # pyright: ignore[reportMissingImports]
    from opentuner.api import TuningRunManager  # pyright: ignore[reportMissingImports]

    by_words, folder = _by_words(table), TemporaryDirectory()
    space = opentuner.ConfigurationManipulator()
    for n, options in enumerate(_options(by_words)):
        space.add_parameter(opentuner.EnumParameter(str(n), options))
    settings = opentuner.default_argparser().parse_args(
        [f"--database={folder.name}/tries.db", "--quiet", "--no-dups", "--test-limit=100000"]
    )
    random.seed(seed)
    np.random.seed(seed)
    with chdir(folder.name):
        manager = TuningRunManager(_interface(space, settings), settings)
    asked: list[object] = []

    def following(tries: list[Try]) -> Configuration:
        folder.name  # noqa: B018 (lives as long as the search)
        if tries and asked:
            manager.report_result(asked.pop(), _result(opentuner, table, tries[-1].configuration))
        done = {each.configuration for each in tries}
        for _ in range(MOST_ASKED):
            wanted = manager.get_next_desired_result()
            if wanted is None:
                break
            data = wanted.configuration.data
            text = by_words.get(tuple(data[str(n)] for n in range(len(data))))
            if text is not None and text not in done:
                asked.append(wanted)
                return text
            manager.report_result(wanted, _result(opentuner, table, text))
        return next(untried(table.prior.configurations, tries))

    return following


def untried(order: Iterable[Configuration], tries: list[Try]) -> Iterator[Configuration]:
    """Configurations that were not tried, in their order."""
    done = {each.configuration for each in tries}
    return (configuration for configuration in order if configuration not in done)


def _interface(space: object, settings: Namespace) -> object:
    from opentuner.measurement.interface import DefaultMeasurementInterface  # pyright: ignore[reportMissingImports]

    return DefaultMeasurementInterface(args=settings, manipulator=space, project_name="table", program_name="table")


def _result(opentuner, table: Table, configuration: Configuration | None) -> object:
    seconds = table.seconds.get(configuration or "")
    return opentuner.Result(time=seconds) if seconds else opentuner.Result(state="ERROR", time=float("inf"))


def _seconds(table: Table, configuration: Configuration | None) -> float:
    return table.seconds.get(configuration or "", BAD * max(table.seconds.values()))


def _by_words(table: Table) -> dict[Words, Configuration]:
    return {_words(Plan.parse(text)): text for text in table.prior.configurations}


def _options(by_words: Iterable[Words]) -> list[list[str]]:
    """The values of each word."""
    return [sorted(values) for values in map(set, zip(*by_words, strict=True))]


def _words(plan: Plan) -> Words:
    settings = (plan.microbatches, plan.pipeline_repeats, plan.remat.value if plan.remat else None, plan.offload)
    return (*(str(plan.degree(axis)) for axis in AXES), *map(str, settings), str(plan.loss_chunks))


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
