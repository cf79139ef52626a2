"""Published sweeps as an evaluator: groups of runs with several shardings, predicted without their source."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from asap.calibration.dataset.rows import read_models, read_rows
from asap.calibration.dataset.runs import PublishedRun, read_runs
from asap.calibration.dataset.sources import grouped, with_inferred_remat
from asap.calibration.fit.predicted_runs import predict_each
from asap.plans import Plan
from asap.prediction.uncertainty.calibration import load_calibration
from optimization.tables import Table, ran, table_of

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "measurements"
FEWEST = 4


def sweeps() -> Iterator[Table]:
    """Every group with at least four shardings; runs of one sharding count as their mean."""
    found = read_runs(read_rows(DATA / "runs.jsonl.gz"), read_models(DATA / "models.jsonl"))
    runs = [run for run in with_inferred_remat([r for r in found if isinstance(r, PublishedRun)]) if run.step_time]
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
