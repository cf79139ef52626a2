"""Searches without a package: the loop's own, random search, coordinate descent. All are blind to the table."""

import math
import random
from collections.abc import Callable, Iterator

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
