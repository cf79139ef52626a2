"""Tables of configurations that were all evaluated once, next to what the model says of them."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import grouped, infer_missing_remat
from asap.calibration.fit.predicted_runs import predict_each
from asap.core.units import Provenance
from asap.evidence.step_belief import Array, Prior, prior_of
from asap.optimize.outcome import Configuration, Outcome
from asap.optimize.proposers.memory_belief import UNBIASED, MemoryKernel
from asap.optimize.proposers.study_prior import Searched, parts_under
from asap.plans import Plan
from asap.prediction.predict_study import expect
from asap.prediction.uncertainty.calibration import Fit, load_calibration
from asap.prediction.uncertainty.residual_kernel import ResidualKernel
from asap.study.study import study_of
from optimization.decoders import ROOM, compiled, decoder

DECODER = ROOM / "decoder_runs.json"
MAD_TO_DEVIATION = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""


@dataclass(frozen=True)
class Table:
    """What came of each configuration, and what the model says of them before.

    Args:
        prior: the model's word.
        kernel: of its residuals.
        outcomes: as evaluated.
        memory: of the factor on modelled HBM.
        capacity: bytes of HBM of a device.
    """

    prior: Prior
    kernel: ResidualKernel
    outcomes: dict[Configuration, Outcome]
    memory: MemoryKernel = UNBIASED
    capacity: float = 1.0

    @cached_property
    def seconds(self) -> dict[Configuration, float]:
        """Step times of the configurations that run."""
        return {name: each.step_time_s for name, each in self.outcomes.items() if each.step_time_s is not None}


def ran(seconds: float) -> Outcome:
    """A measured step."""
    return Outcome(status="done", step_time_s=seconds, provenance=Provenance.MEASURED)


def table_of(plans: list[Plan], modelled: list[float], outcomes: list[Outcome], fit: Fit, parts: Array) -> Table:
    """A table in which memory plays no part, one row for each plan: what is modelled, in seconds, the parts of that,
    and what came of it."""
    prior = prior_of(plans, modelled, parts)
    return Table(prior, fit.residual_kernel, dict(zip(prior.configurations, outcomes, strict=True)))


def measured_decoder() -> tuple[Table, float]:
    """The small decoder and its noise: measured on virtual CPU devices, modelled for TPU v5e, another machine.

    The noise is the robust standard deviation of ``ln(median)`` between two runs of one configuration.
    """
    from optimization.decoders import OVERRIDES
    from optimization.train_on_cpu import experiment

    document = json.loads(DECODER.read_text(encoding="utf-8"))
    measured, again = document["median_step_s"], document["median_step_s_again"]
    apart = [abs(math.log(again[name] / measured[name])) for name in again]
    plans = [Plan.parse(text) for text in measured]
    study = study_of(experiment(OVERRIDES))
    steps = [prediction.step_time for prediction in expect(study, plans)]
    modelled = [step.value for step in steps if step is not None]
    outcomes, parts = list(map(ran, measured.values())), parts_under(study, plans)
    table = table_of(plans, modelled, outcomes, load_calibration().full, parts)
    return table, MAD_TO_DEVIATION * median(apart) / math.sqrt(2)


def compiled_table(name: str) -> Table:
    """A decoder that was compiled under every configuration of a space."""
    outcomes = compiled(name)
    study, plans = study_of(decoder(name)), [Plan.parse(text) for text in outcomes]
    predictions, guided = expect(study, plans), Searched.of(study).proposer(compiled=True)
    held = np.array([each.memory.total.value if each.memory else math.nan for each in predictions])
    modelled = [each.step_time.value if each.step_time else math.nan for each in predictions]
    table = table_of(plans, modelled, list(outcomes.values()), load_calibration().full, parts_under(study, plans))
    prior = replace(table.prior, log_fill=np.log(held / guided.capacity))
    return replace(table, prior=prior, kernel=guided.kernel, memory=guided.memory, capacity=guided.capacity)


MEASUREMENTS = Path(__file__).resolve().parents[2] / "tests" / "data" / "measurements"
FEWEST = 4


def sweeps() -> Iterator[Table]:
    """Every group with at least four shardings; runs of one sharding count as their mean."""
    found = read_runs(read_rows(MEASUREMENTS / "runs.jsonl.gz"), read_models(MEASUREMENTS / "models.jsonl"))
    runs = [run for run in infer_missing_remat([r for r in found if isinstance(r, PublishedRun)]) if run.step_time]
    calibration = load_calibration()
    fits = [calibration.fit_for(run.source) for run in runs]
    predicted = predict_each(runs, fits)
    for members in grouped(runs):
        plans: dict[Plan, list[int]] = defaultdict(list)
        for row in members:
            plans[runs[row].plan].append(row)
        if len(plans) >= FEWEST:
            modelled = [float(np.mean(predicted.step_time[rows])) for rows in plans.values()]
            parts = np.array([predicted.parts[rows].mean(axis=0) for rows in plans.values()])
            measured = [float(np.mean([runs[row].step_time or 0.0 for row in rows])) for rows in plans.values()]
            yield table_of(list(plans), modelled, list(map(ran, measured)), fits[members[0]], parts)
