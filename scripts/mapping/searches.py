"""Searches of a table: the product's, simple ones, and well-known packages that are not among the dependencies."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asap.mapping.check import check
from asap.optimize.loop import Proposer
from asap.optimize.outcome import Configuration, Try
from asap.optimize.proposers.mapping_prior import KERNEL, PredictedMappings
from asap.optimize.proposers.model_guided import ModelGuided
from mapping.table import Table, decisions

Evaluate = Callable[[Configuration], float | None]
"""Modelled seconds of a program, ``None`` if it is invalid."""

Search = Callable[[Table, Evaluate, int, bool], None]
"""Evaluates programs of a table until it is stopped: with a seed, on the raw space or on the legal one."""


class DoneError(Exception):
    """The budget is spent, or nothing is left."""


def predicted(textbook: bool = False) -> Search:
    """The loop's own proposer: repairs, and predictions that evaluations correct."""

    def run(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
        start = table.textbook if textbook else next(_random(table, seed, legal))
        wrong = (lambda text: check(text, None, table.hardware).feedback) if legal else lambda text: ()
        _propose(PredictedMappings(table.space, ModelGuided(table.prior, KERNEL), start, wrong), table, evaluate)

    return run


def in_predicted_order(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """A program at random, then all that pass the checks as predicted, whatever is seen."""
    evaluate(next(_random(table, seed, legal)))
    for place in np.argsort(table.prior.log_time, kind="stable"):
        evaluate(table.prior.configurations[place])
    raise DoneError


def _propose(proposer: Proposer, table: Table, evaluate: Evaluate) -> None:
    tries: list[Try] = []
    while (found := proposer.propose(tries)) is not None:
        outcome = table.outcome(found.configuration)
        tries.append(Try(number=len(tries) + 1, configuration=found.configuration, why=found.why, outcome=outcome))
        evaluate(found.configuration)
    raise DoneError


def at_random(table: Table, evaluate: Evaluate, seed: int, legal: bool) -> None:
    """Programs of the space, each as likely as any other."""
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
        chosen = decisions(table.space, start)
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
