"""``scripts/bench optimize``: evaluations until the best of a table is found, by us and by others on the same tables.

Ours needs no luck. Random search and optuna (TPE over the list of legal configurations' axes) are given the legal
configurations alone, and twenty seeds. Without optuna it is left out and named.
"""

import json
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import numpy as np

from asap.core.provenance import Provenance
from asap.optimize.outcome import Outcome, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.plans import AXES, Plan
from asap.prediction.predict_study import expect
from asap.prediction.uncertainty.calibration import load_calibration
from asap.study.study import study_of
from optimization.published import Table, sweeps, table_of
from optimization.train_on_cpu import experiment

DECODER = Path(__file__).with_name("decoder_runs.json")
SEEDS = 20
WITHIN, NOISE = 0.02, 0.05
"""Of a published best; and of the best of the small decoder, whose medians are known to that."""


def benchmark() -> dict[str, object]:
    """Mean and worst number of evaluations over tables, and over seeds where there is luck."""
    published = list(sweeps())
    found: dict[str, object] = {"published_sweeps": {"tables": len(published)} | _rivals(published, WITHIN)}
    if DECODER.exists():
        decoder = _decoder()
        found["small_decoder_on_cpu"] = {"configurations": len(decoder.measured)} | _rivals([decoder], NOISE)
    if find_spec("optuna") is None:
        found["left_out"] = "optuna is not installed"
    return found


def _rivals(tables: list[Table], within: float) -> dict[str, object]:
    seeds = range(SEEDS)
    scores: dict[str, object] = {
        "asap": _score(evaluations(table, ours(table), within) for table in tables),
        "order_of_the_model": _score(evaluations(table, in_order(table), within) for table in tables),
        "random": _score(evaluations(table, at_random(table, seed), within) for table in tables for seed in seeds),
    }
    if find_spec("optuna") is not None:
        scores["optuna"] = _score(evaluations(table, by_optuna(table, s), within) for table in tables for s in seeds)
    return scores


def _score(counts: Iterable[int]) -> dict[str, float]:
    found = list(counts)
    return {"mean": round(fmean(found), 2), "worst": max(found)}


def evaluations(table: Table, following: Callable[[list[Try]], str], within: float) -> int:
    """How many until one is within a share of the best."""
    tries, good = list[Try](), min(table.measured.values()) * (1 + within)
    while True:
        configuration = following(tries)
        seconds = table.measured[configuration]
        outcome = Outcome(status="done", step_time_s=seconds, provenance=Provenance.MEASURED)
        tries.append(Try(number=len(tries) + 1, configuration=configuration, why="", outcome=outcome))
        if seconds <= good:
            return len(tries)


def ours(table: Table) -> Callable[[list[Try]], str]:
    """The built-in proposer."""
    proposer = ModelGuided(table.prior, table.kernel)

    def following(tries: list[Try]) -> str:
        suggestion = proposer.propose(tries)
        assert suggestion is not None
        return suggestion.configuration

    return following


def in_order(table: Table) -> Callable[[list[Try]], str]:
    """The model's order, whatever comes of it."""
    order = np.argsort(table.prior.log_time, kind="stable")
    return lambda tries: table.prior.configurations[order[len(tries)]]


def at_random(table: Table, seed: int) -> Callable[[list[Try]], str]:
    """Legal configurations in random order, none twice."""
    order = np.random.default_rng(seed).permutation(len(table.prior.configurations))
    return lambda tries: table.prior.configurations[order[len(tries)]]


def by_optuna(table: Table, seed: int) -> Callable[[list[Try]], str]:
    """TPE over degrees and settings; what is not in the table costs nothing and is told to be bad."""
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    by_words = {_words(Plan.parse(text)): text for text in table.prior.configurations}
    choices = [sorted({words[n] for words in by_words}) for n in range(len(next(iter(by_words))))]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=3))
    asked = []

    def following(tries: list[Try]) -> str:
        if asked:
            assert tries[-1].outcome is not None
            study.tell(asked.pop(), tries[-1].outcome.step_time_s)
        done = {each.configuration for each in tries}
        for _ in range(200):
            trial = study.ask()
            words = tuple(trial.suggest_categorical(str(n), options) for n, options in enumerate(choices))
            text = by_words.get(words)
            if text is not None and text not in done:
                asked.append(trial)
                return text
            study.tell(trial, table.measured[text] if text else 10 * max(table.measured.values()))
        return next(text for text in table.prior.configurations if text not in done)

    return following


def _words(plan: Plan) -> tuple[str, ...]:
    settings = (plan.microbatches, plan.pipeline_repeats, plan.remat.value if plan.remat else None, plan.offload)
    return (*(str(plan.degree(axis)) for axis in AXES), *map(str, settings), str(plan.loss_chunks))


def _decoder() -> Table:
    """The small decoder: measured on virtual CPU devices, modelled for TPU v5e, which is another machine."""
    measured: dict[str, float] = json.loads(DECODER.read_text(encoding="utf-8"))["median_step_s"]
    plans = [Plan.parse(text) for text in measured]
    steps = [prediction.step_time for prediction in expect(study_of(experiment([])), plans)]
    modelled = [step.value for step in steps if step is not None]
    return table_of(plans, modelled, list(measured.values()), load_calibration().full)
