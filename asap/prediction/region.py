"""How far a run lies outside of what was calibrated: 0 inside, 1 at the region's own width, more for the unseen.

A chip, framework class or precision that never occurred counts as much as the width of the region.
"""

from collections.abc import Iterable

import numpy as np

from asap.prediction.calibration import Region
from asap.prediction.case import Case, Number
from asap.prediction.classes import Groups
from asap.prediction.compute import tokens_per_microbatch

UNSEEN = {"chips": 1.0, "frameworks": 0.5, "precisions": 0.5}


def features(case: Case) -> dict[str, Number]:
    """Log2 of what a run's speed depends on."""
    layout, model = case.layout, case.model
    batch_shards = layout.replica * layout.data * layout.expert * layout.dcn_replica * layout.dcn_data
    values = {
        "width": model.width,
        "layers": model.layers,
        "experts": model.experts + 1.0,
        "sequence": case.work.sequence,
        "tokens a microbatch": tokens_per_microbatch(case),
        "batch shards": batch_shards,
        "model": layout.model,
        "seq": layout.seq,
        "expert": layout.expert,
        "stage": layout.stage * layout.dcn_stage,
    }
    return {name: np.log2(value) for name, value in values.items()}


def region_of(case: Case, groups: Iterable[Groups]) -> Region:
    """The box around a set of runs."""
    found, seen = features(case), list(groups)
    return Region(
        low={name: float(np.min(value)) for name, value in found.items()},
        high={name: float(np.max(value)) for name, value in found.items()},
        chips=tuple(sorted({group.chip for group in seen})),
        frameworks=tuple(sorted({group.framework for group in seen if group.framework})),
        precisions=tuple(sorted({group.precision for group in seen})),
    )


def unseen(region: Region, groups: Groups) -> float:
    """The distance that comes from groups which the region does not have."""
    return (
        UNSEEN["chips"] * (groups.chip not in region.chips)
        + UNSEEN["frameworks"] * (groups.framework not in region.frameworks)
        + UNSEEN["precisions"] * (groups.precision not in region.precisions)
    )


def distance_from(region: Region, case: Case, strangeness: Number) -> Number:
    """Distance of each case from the region; ``strangeness`` is what :func:`unseen` says of its groups."""
    outside = np.float64(0.0)
    for name, value in features(case).items():
        low, high = region.low[name], region.high[name]
        width = max(high - low, 1.0)
        outside = outside + np.maximum(np.maximum(low - value, value - high), 0.0) / width
    return outside + strangeness
