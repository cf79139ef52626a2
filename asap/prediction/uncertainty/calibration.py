"""The calibration as data: constants with their group effects, folds, residuals, and the region that they cover.

``calibration.json`` is written by ``scripts/calibrate`` and by nothing else.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import ConfigError
from asap.prediction.prediction import FIT_CONFIDENCE
from asap.prediction.step_model.constants import NAMES, Constants
from asap.prediction.step_model.groups import EXPANDABLE, PYTORCH, Groups
from asap.prediction.step_model.inputs import Number, StepInputs
from asap.prediction.uncertainty.own_runs import Sharing
from asap.prediction.uncertainty.residual_kernel import PlanWidths, ResidualKernel, ResidualTransfer
from asap.prediction.uncertainty.step_interval import DENSE, MIXTURE, StepInterval
from asap.stacks.kin import kins

BUNDLED = Path(__file__).with_name("calibration.json")
DIMENSIONS = tuple(field.name for field in fields(Groups))


class Constant(BaseModel):
    """A constant for all, and the factors by which groups deviate from it: of a share, factors of its odds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    share: bool = Field(default=False, description="whether it lies between 0 and 1")
    effects: dict[str, dict[str, float]] = Field(default_factory=dict, description="dimension → group → factor")

    def of(self, groups: Mapping[str, str | None]) -> float:
        """The value for a run of these groups; a group that was never seen has no effect."""
        factors = (self.effects.get(dimension, {}).get(group or "", 1.0) for dimension, group in groups.items())
        factor = math.prod(factors)
        return self.value * factor / (1 + self.value * (factor - 1)) if self.share else self.value * factor


class Region(BaseModel):
    """What the development runs covered: ranges of log2 features, and the groups that occurred."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: dict[str, float]
    high: dict[str, float]
    chips: tuple[str, ...]
    vendors: tuple[str, ...]
    frameworks: tuple[str, ...]
    precisions: tuple[str, ...]
    together: tuple[str, ...] = Field(
        default=(), description="kind of model on stack on maker of the chip, kind of model on chip"
    )


class AllocatorOverhead(BaseModel):
    """Factors from modelled to reserved bytes, whose logarithm has a logistic distribution.

    A plan fits if the reserved bytes are within the HBM.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: float = Field(default=1.0, description="of all parts, at the required confidence that the plan fits")
    reuse: float = Field(default=1.0, description="of temporaries, on top of scale")
    low: float = Field(default=1.0, description="lower end of the 90 % interval, over the reserved bytes")
    high: float = Field(default=1.0, description="its upper end")

    def probability_fits(self, reserved: Number, capacity: float, scatter: Number = 1.0) -> NDArray[np.float64]:
        """That so many reserved bytes, at the required confidence, are within the capacity."""
        required = math.log(FIT_CONFIDENCE / (1 - FIT_CONFIDENCE))
        if self.high <= self.low:
            return np.asarray(reserved <= capacity, dtype=float)
        width = scatter * math.log(self.high / self.low) / (2 * math.log(19))
        return np.asarray(0.5 * (1 + np.tanh((np.log(capacity / np.asarray(reserved)) / width + required) / 2)))


class Fit(BaseModel):
    """One fit: of all development runs, or of all but one source's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    constants: dict[str, Constant]
    region: Region
    step_interval: StepInterval
    residual_transfer: ResidualTransfer = ResidualTransfer()
    residual_kernel: ResidualKernel
    sharing: Sharing = Sharing()
    anchored_widths: PlanWidths = Field(description="of a step that is anchored to a measured one")
    ratio_widths: PlanWidths = Field(description="of the ratio of two steps, neither measured")
    allocator_overheads: dict[str, AllocatorOverhead] = Field(description="by allocator")

    def overhead(self, allocator: str) -> AllocatorOverhead:
        """Of this allocator; none for one that no run used."""
        if allocator == EXPANDABLE:
            return self.overhead(PYTORCH).model_copy(update={"reuse": 1.0})
        return self.allocator_overheads.get(allocator, AllocatorOverhead())

    def resolve(self, groups: Sequence[Groups]) -> Constants:
        """The constants of many runs as arrays."""
        found = {group: self.resolve_one(group) for group in set(groups)}
        return Constants(**{name: np.array([getattr(found[group], name) for group in groups]) for name in NAMES})

    def resolve_one(self, groups: Groups) -> Constants:
        """The constants of one run as numbers."""
        named = asdict(groups)
        return Constants(**{name: self.constants[name].of(named) for name in NAMES})


class Calibration(BaseModel):
    """Everything fitted to the development runs, with its date and its error on left-out sources."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["asap.calibration/4"] = "asap.calibration/4"
    date: str
    rows: dict[str, int] = Field(description="development runs by source")
    error: dict[str, float] = Field(description="of runs whose source was left out")
    full: Fit
    without: dict[str, Fit] = Field(description="source → the fit that never saw it")
    utilisation: dict[str, dict[str, float]] = Field(
        description="chip → source → median MFU, for the constant-mfu baseline"
    )

    def fit_for(self, source: str | None) -> Fit:
        """The fit that may be used on a run of this source: never one that saw it."""
        return self.without.get(source or "", self.full)

    def best_mfu(self, chip: str) -> float | None:
        """The median MFU of the published source that gets most out of a chip; ``None`` for a chip without one."""
        return max(self.utilisation.get(chip, {}).values(), default=None)


@cache
def load_calibration() -> Calibration:
    """The bundled calibration; raises ConfigError where it cannot be read or is none."""
    try:
        return Calibration.model_validate(json.loads(BUNDLED.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        hint = "write one with scripts/calibrate"
        raise ConfigError("is not a calibration", where=str(BUNDLED), hint=hint) from error


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


def region_of(inputs: StepInputs, groups: Iterable[Groups], mixtures: Iterable[bool]) -> Region:
    """The box around a set of runs, of which some are mixtures of experts."""
    found, seen = features(inputs), list(groups)
    return Region(
        low={name: float(np.min(value)) for name, value in found.items()},
        high={name: float(np.max(value)) for name, value in found.items()},
        chips=tuple(sorted({group.chip for group in seen})),
        vendors=tuple(sorted({group.vendor for group in seen if group.vendor})),
        frameworks=tuple(sorted({group.framework for group in seen if group.framework})),
        precisions=tuple(sorted({group.precision for group in seen})),
        together=tuple(sorted({pair for one in zip(seen, mixtures, strict=True) for pair in _together(*one)})),
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


def doubtful_groups(region: Region, groups: Groups, mixture: bool, adapters: bool = False) -> tuple[str, ...]:
    """The unseen groups; ``together`` where those of a run were seen, but not with one another, nor with adapters; and
    ``code`` where the framework class gathers many, of which a run may use another."""
    unseen = unseen_groups(region, groups)
    of_stack, of_model = (pair not in region.together for pair in _together(groups, mixture))
    apart = adapters or (of_stack and not {"framework", "vendor"} & {*unseen}) or (of_model and "chip" not in unseen)
    kin = kins().get(groups.framework or "")
    code = () if kin and kin.one_code else ("code",)
    return (*unseen, *(("together",) if apart else ()), *code)


OUTSIDE = 2.0
"""Times as widely as inside of the region ln(reserved / modelled) scatters outside: 49 published peaks of kinds of
models that the fit without their source had not seen with their chip or software, 2.2 times (RMS) as 165 inside."""


def hbm_scatter(distance: Number, doubtful: Collection[str]) -> Number:
    """Times as widely as the runs of the fit that a run may miss its HBM; doubtful groups as those of time."""
    return np.where((np.asarray(distance) > 0) | ("together" in doubtful), OUTSIDE, 1.0)


def _together(groups: Groups, mixture: bool) -> tuple[str, str]:
    kind = MIXTURE if mixture else DENSE
    return f"{kind} on {groups.framework} on {groups.vendor}", f"{kind} on {groups.chip}"
