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

from asap.prediction.calibration import Calibration
from asap.prediction.case import Case
from asap.prediction.compute import model_flops
from asap.prediction.constants import NAMES, Constants
from asap.prediction.runs import Run
from asap.prediction.step import step

Rival = Literal["constant-mfu", "roofline"]
RIVALS: tuple[Rival, ...] = get_args(Rival)
Vector = NDArray[np.float64]

_IDEAL = dict.fromkeys(NAMES, 1.0) | dict.fromkeys(
    (name for name in NAMES if name.endswith(("overhead", "floor", "exposure"))), 0.0
)


def rival_step_times(rival: Rival, case: Case, runs: Sequence[Run], calibration: Calibration) -> Vector:
    """Seconds of a step of each run, by a rival."""
    devices = np.array([run.hardware.devices for run in runs])
    if rival == "constant-mfu":
        usual = np.array([_usual(run, calibration) for run in runs])
        return np.asarray(model_flops(case) / (devices * case.machine.peak_matmul * usual))
    ideal = step(case, Constants(**_IDEAL))
    collectives = np.stack(
        [ideal.tensor, ideal.sequence, ideal.expert, ideal.data, ideal.replica + ideal.slices, ideal.stage]
    )
    return np.maximum(model_flops(case) / (devices * case.machine.peak_matmul), collectives.max(axis=0))


def _usual(run: Run, calibration: Calibration) -> float:
    others = [value for source, value in calibration.utilisation.get(run.chip, {}).items() if source != run.source]
    if not others:
        tables = calibration.utilisation.values()
        others = [value for table in tables for source, value in table.items() if source != run.source]
    return float(np.median(others))
