"""The two simplest models, scored on the same rows: what ours has to beat.

- ``constant-mfu``: every run reaches the model FLOP utilisation that is usual on its hardware: the median over the
  development sources other than its own, each with its own median; on other hardware, the median over all.
- ``roofline``: "How to Scale Your Model", chapters 1 and 5: the longer of FLOPs over the peak and of each axis's
  collectives over the bandwidth, with nothing lost and everything overlapped.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from asap.calibration.dataset.runs import PublishedRun
from asap.prediction.step_model.compute import model_flops
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.physics import fastest
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import Calibration

Baseline = Literal["constant-mfu", "roofline"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
Vector = NDArray[np.float64]


def baseline_step_times(
    baseline: Baseline, inputs: StepInputs, runs: Sequence[PublishedRun], calibration: Calibration
) -> Vector:
    """Seconds of a step of each run, by a baseline."""
    devices = np.array([run.hardware.devices for run in runs])
    if baseline == "constant-mfu":
        usual = np.array([_usual(run, calibration) for run in runs])
        return np.asarray(model_flops(inputs) / (devices * inputs.hardware.peak_matmul * usual))
    ideal = predict_step(inputs, fastest())
    collectives = np.stack(
        [ideal.tensor, ideal.sequence, ideal.expert, ideal.data, ideal.replica + ideal.slices, ideal.stage]
    )
    return np.maximum(model_flops(inputs) / (devices * inputs.hardware.peak_matmul), collectives.max(axis=0))


def _usual(run: PublishedRun, calibration: Calibration) -> float:
    others = [value for source, value in calibration.utilisation.get(run.chip, {}).items() if source != run.source]
    if not others:
        tables = calibration.utilisation.values()
        others = [value for table in tables for source, value in table.items() if source != run.source]
    return float(np.median(others))
