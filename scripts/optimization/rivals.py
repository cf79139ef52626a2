"""Searches that are told the legal configurations of a table and nothing else: random, and two packages."""

import random
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir
from tempfile import TemporaryDirectory

import numpy as np

from asap.optimize.outcome import Configuration, Try
from asap.plans import AXES, Plan
from optimization.tables import Table

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
