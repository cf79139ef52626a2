"""The same searches by well-known packages, which are not among the dependencies."""

import random
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any

from mapping.searches import Evaluate
from mapping.table import Table, decisions

BUDGET = 150
"""Programs that a search may evaluate."""


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


def opentuner_search(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """OpenTuner as it comes: a bandit over its techniques. Its database and log go to a folder that is removed."""
    import opentuner  # pyright: ignore[reportMissingImports]

    options = _options(table, legal)

    class Interface(opentuner.MeasurementInterface):
        def manipulator(self) -> object:
            found = opentuner.ConfigurationManipulator()
            for key, values in options.items():
                found.add_parameter(opentuner.EnumParameter(key, list(values)))
            return found

        def run(self, desired_result: Any, input: object, limit: float) -> object:
            del input, limit
            seconds = evaluate(table.space.text(desired_result.configuration.data))
            return opentuner.Result(time=seconds) if seconds else opentuner.Result(state="ERROR", time=float("inf"))

    random.seed(seed)
    with TemporaryDirectory() as folder, chdir(folder):
        words = [f"--database={folder}/tries.db", f"--test-limit={3 * BUDGET}", "--quiet", "--no-dups"]
        Interface.main(opentuner.default_argparser().parse_args(words))


def _options(table: Table, legal: bool) -> dict[str, tuple[str, ...]]:
    if not legal:
        return dict(table.space.options)
    chosen = [decisions(table.space, text) for text in table.programs]
    return {key: tuple(dict.fromkeys(each[key] for each in chosen)) for key in table.space.options}
