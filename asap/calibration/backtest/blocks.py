"""Three blocks that are never mixed: sources that the fit saw, that were left out of it, that no choice was made on."""

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from asap.calibration.backtest.advice import Advice
from asap.calibration.backtest.loop import Loop
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.backtest.scores import Errors, MemoryScore, Ranking, WhatIf, pooled_quantile, score_memory
from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import UNFITTED, duplicates
from asap.calibration.fit.predicted_runs import reserved_bytes, stacked
from asap.prediction.uncertainty.calibration import Calibration, Fit

TITLES = {
    "seen": "seen by the fit",
    "left_out": "left out of the fit, variants were chosen on them",
    "never_used": "never used for a fit or a choice",
}


class Block(BaseModel):
    """Scores of one block; every source weighs the same."""

    model_config = ConfigDict(frozen=True)

    sources: int
    rows: int
    median_of_medians: float = Field(description="median over sources of the source's median error")
    p90: float = Field(description="90 % quantile of the error, sources weighing the same")
    coverage_mean: float = Field(description="share inside the 90 % interval, mean over sources")
    coverage_worst: float = Field(description="of the worst source")
    half_width: float = Field(description="median over sources of the median half-width of ln(measured / predicted)")
    what_if_median: float | None = Field(default=None, description="median over sources of what-if errors")
    what_if_coverage: float | None = Field(default=None, description="mean over sources")
    ranking: Ranking
    advice: Advice
    memory: MemoryScore
    loop: Loop | None = None
    by_source: dict[str, Errors] = Field(description="worst first")
    what_if_by_source: dict[str, WhatIf]


def blocks_of(runs: Sequence[PublishedRun], known: Calibration, *, loop: bool = False) -> dict[str, Block]:
    """The blocks that have timed runs, by the keys of :data:`TITLES`. What another source publishes as well is used."""
    ours = [run for run in runs if run.source in known.rows]
    seen = [run for run in ours if run.source not in UNFITTED]
    twice = {name for pair in duplicates(runs) for name in pair}
    others = [run for run in runs if run.source not in known.rows and run.id not in twice]
    parts = {
        "seen": (seen, [known.full] * len(seen)),
        "left_out": (ours, [known.fit_for(run.source) for run in ours]),
        "never_used": (others, [known.full] * len(others)),
    }
    found = {name: _block(own, fits, loop) for name, (own, fits) in parts.items()}
    return {name: block for name, block in found.items() if block is not None}


def _block(runs: Sequence[PublishedRun], fits: Sequence[Fit], loop: bool) -> Block | None:
    timed = [row for row, run in enumerate(runs) if run.step_time is not None]
    if not timed:
        return None
    table = PredictedTable.of([runs[row] for row in timed], [fits[row] for row in timed])
    names = [run.source for run in table.runs]
    by_source = table.by(lambda run: run.source)
    changes: dict[str, WhatIf] = {}
    for name in by_source:
        found = table.part([row for row, source in enumerate(names) if source == name]).what_if()
        changes |= {name: found} if found else {}
    covered = [errors.coverage_90 or 0.0 for errors in by_source.values()]
    return Block(
        sources=len(by_source),
        rows=len(timed),
        median_of_medians=round(float(np.median([errors.median_ape for errors in by_source.values()])), 4),
        p90=pooled_quantile(np.abs(table.predicted / table.measured - 1), names, 0.9),
        coverage_mean=round(float(np.mean(covered)), 4),
        coverage_worst=min(covered),
        half_width=round(float(np.median([errors.half_width or 0.0 for errors in by_source.values()])), 4),
        what_if_median=round(float(np.median([w.median_ape for w in changes.values()])), 4) if changes else None,
        what_if_coverage=round(float(np.mean([w.coverage_90 or 0 for w in changes.values()])), 4) if changes else None,
        ranking=table.ranking(),
        advice=table.advice(),
        memory=memory_score(runs, fits),
        loop=table.loop() if loop else None,
        by_source=by_source,
        what_if_by_source=changes,
    )


def memory_score(runs: Sequence[PublishedRun], fits: Sequence[Fit]) -> MemoryScore:
    """What is said of runs that fitted and of runs that did not."""
    if not runs:
        return score_memory(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    fitting = reserved_bytes(runs, fits) <= stacked(runs).hardware.hbm_bytes
    return score_memory(fitting, np.array([run.out_of_memory for run in runs]))
