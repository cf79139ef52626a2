"""How far a run lies outside the calibrated region: 0 inside, 1 at one width of the region outside.

A chip, framework class or precision that never occurred counts as much as the width of the region.
"""

from collections.abc import Iterable

import numpy as np

from asap.prediction.step_model.compute import tokens_per_microbatch
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.uncertainty.calibration import Region

UNSEEN = {"chips": 1.0, "frameworks": 0.5, "precisions": 0.5}


def features(inputs: StepInputs) -> dict[str, Number]:
    """Log2 of what a run's speed depends on."""
    layout, model = inputs.plan, inputs.model
    values = {
        "width": model.width,
        "layers": model.layers,
        "experts": model.experts + 1.0,
        "sequence": inputs.workload.sequence,
        "tokens per microbatch": tokens_per_microbatch(inputs),
        "batch shards": layout.batch_shards,
        "model": layout.model,
        "seq": layout.seq,
        "expert": layout.expert,
        "stage": layout.stages,
    }
    return {name: np.log2(value) for name, value in values.items()}


def region_of(inputs: StepInputs, groups: Iterable[Groups]) -> Region:
    """The box around a set of runs."""
    found, seen = features(inputs), list(groups)
    return Region(
        low={name: float(np.min(value)) for name, value in found.items()},
        high={name: float(np.max(value)) for name, value in found.items()},
        chips=tuple(sorted({group.chip for group in seen})),
        frameworks=tuple(sorted({group.framework for group in seen if group.framework})),
        precisions=tuple(sorted({group.precision for group in seen})),
    )


def unseen_groups(region: Region, groups: Groups) -> float:
    """The distance that groups add which no development run belongs to."""
    return (
        UNSEEN["chips"] * (groups.chip not in region.chips)
        + UNSEEN["frameworks"] * (groups.framework not in region.frameworks)
        + UNSEEN["precisions"] * (groups.precision not in region.precisions)
    )


def distance_from(region: Region, inputs: StepInputs, unseen: Number) -> Number:
    """Distance of each step from the region; ``unseen`` is what :func:`unseen_groups` adds for its groups."""
    outside = np.float64(0.0)
    for name, value in features(inputs).items():
        low, high = region.low[name], region.high[name]
        width = max(high - low, 1.0)
        outside = outside + np.maximum(np.maximum(low - value, value - high), 0.0) / width
    return outside + unseen
