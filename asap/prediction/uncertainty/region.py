"""How far a run lies outside the calibrated region: 0 inside, 1 at one width of the region outside, and which of its
groups were never seen."""

from collections.abc import Iterable

import numpy as np

from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.uncertainty.calibration import Region

ONE_CODE = ("maxtext", "megatron", "nemo")
"""Framework classes that are one code, or forks of one."""


def features(inputs: StepInputs) -> dict[str, Number]:
    """Log2 of what a run's speed depends on."""
    layout, model = inputs.plan, inputs.model
    values = {
        "width": model.width,
        "layers": model.layers,
        "experts": model.experts + 1.0,
        "sequence": inputs.workload.sequence,
        "tokens per microbatch": inputs.tokens_per_microbatch,
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
        vendors=tuple(sorted({group.vendor for group in seen if group.vendor})),
        frameworks=tuple(sorted({group.framework for group in seen if group.framework})),
        precisions=tuple(sorted({group.precision for group in seen})),
    )


def distance_from(region: Region, inputs: StepInputs) -> Number:
    """Distance of each step's sizes from the region."""
    outside = np.float64(0.0)
    for name, value in features(inputs).items():
        low, high = region.low[name], region.high[name]
        width = max(high - low, 1.0)
        outside = outside + np.maximum(np.maximum(low - value, value - high), 0.0) / width
    return outside


def unseen_groups(region: Region, groups: Groups) -> tuple[str, ...]:
    """The groups of a run that no development run belongs to: of its chip, vendor, framework, precision."""
    seen = {
        "chip": region.chips, "vendor": region.vendors, "framework": region.frameworks, "precision": region.precisions,
    }  # fmt: skip
    return tuple(kind for kind, known in seen.items() if getattr(groups, kind) not in known)


def doubtful_groups(region: Region, groups: Groups) -> tuple[str, ...]:
    """The unseen groups, and ``code`` where the framework class gathers many, of which a run may use another."""
    return (*unseen_groups(region, groups), *(("code",) if groups.framework not in ONE_CODE else ()))
