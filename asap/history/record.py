"""A past optimization: what was changed, on what, and the outcome. Failures are recorded too."""

import math
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from asap.core.text import plain
from asap.core.units import Quantity, format_rate, format_seconds, significant
from asap.diagnosis import Bottleneck
from asap.experiments import HardwareReference
from asap.history.changes import axis_changes, mesh_of
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.profiles.profile import Bound

SCHEMA = "asap.history/1"
_SECONDS = "s"
_ROUNDING = 0.02
_SIZE_LIMITS = ((1e9, "below 1B"), (4e9, "1B to 4B"), (16e9, "4B to 16B"), (64e9, "16B to 64B"), (256e9, "64B to 256B"))
_LARGEST_SIZE = "above 256B"


class Outcome(StrEnum):
    """Outcome of the change."""

    IMPROVED = "improved"
    SLOWER = "slower"
    OUT_OF_MEMORY = "out_of_memory"


class ChangeKind(StrEnum):
    """What a change is of."""

    AXIS = "axis"
    SETTING = "setting"
    WORKLOAD = "workload"
    HARDWARE = "hardware"
    KERNEL = "kernel"
    FLAG = "flag"
    PATCH = "patch"


class Part(StrEnum):
    """The part of a step that a change touches."""

    ATTENTION = "attention"
    MATMUL = "matmul"
    LOSS = "loss"
    COLLECTIVES = "collectives"
    RECOMPUTATION = "recomputation"
    OPTIMIZER = "optimizer"
    INPUT = "input"
    STEP = "step"


class Model(BaseModel):
    """The model that was trained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    parameters: PositiveFloat | None = Field(default=None, description="count, with all experts")
    architecture: Architecture | None = None

    @property
    def size_class(self) -> str | None:
        """A range of parameters, each four times the one below."""
        return size_class(self.parameters)


class Source(BaseModel):
    """Where the record comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1)
    url: str | None = None
    rows: tuple[str, ...] = Field(default=(), description="IDs of the published rows or experiments behind it")


class HistoryRecord(BaseModel):
    """One change of a training run. What is not known is ``None``; ``before`` and ``after`` are whole plans."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["asap.history/1"] = Field(default=SCHEMA, alias="schema")
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    title: str = Field(min_length=1, max_length=200)
    model: Model = Model()
    hardware: HardwareReference = HardwareReference()
    workload: Workload = Workload()
    before: Plan | None = None
    after: Plan | None = None
    bottleneck: Bottleneck | None = Field(default=None, description="of the run before the change")
    bound: Bound | None = Field(default=None, description="what most of its time was bound by, under the roofline")
    other_changes: tuple[str, ...] = Field(default=(), description="what changed besides the plan")
    kind: ChangeKind | None = Field(default=None, description="of a change beside the plan")
    touches: Part | None = Field(default=None, description="the part of the step that such a change touches")
    measure: str = Field(default="step time", description="what the speedup is a ratio of")
    measured_before: Quantity | None = None
    measured_after: Quantity | None = None
    outcome: Outcome
    speedup: PositiveFloat | None = Field(default=None, description="time before over time after; above 1 is faster")
    summary: str = Field(min_length=1, max_length=2000)
    profile_links: tuple[str, ...] = ()
    source: Source
    confidence: float = Field(ge=0, le=1, description="that the change, and nothing else, made the difference")
    origin: Literal["bundled", "user", "shared"] = Field(default="user", description="who brought it; set on reading")

    @property
    def devices(self) -> int | None:
        """JAX devices of the job."""
        plan = self.before or self.after
        return self.hardware.devices or (plan.devices if plan else None)

    @model_validator(mode="after")
    def _has_a_change(self) -> "HistoryRecord":
        if self.before == self.after and not self.other_changes:
            raise ValueError("nothing changed: before and after are the same plan and there is no other change")
        for plan in (self.before, self.after):
            if plan and self.hardware.devices and plan.devices != self.hardware.devices:
                raise ValueError(f"{plan} has {plan.devices} devices, the hardware {self.hardware.devices}")
        return self

    @model_validator(mode="after")
    def _outcome_is_measured(self) -> "HistoryRecord":
        if self.outcome is Outcome.OUT_OF_MEMORY and (self.measured_after or self.speedup):
            raise ValueError("a run that ran out of memory has no measurement after")
        if self.speedup and (self.speedup > 1) != (self.outcome is Outcome.IMPROVED):
            raise ValueError(f"a speedup of {self.speedup} does not mean {self.outcome.value}")
        measured = measured_speedup(self.measured_before, self.measured_after)
        if measured and not math.isclose(measured, self.speedup or 0, rel_tol=_ROUNDING):
            raise ValueError(f"the speedup is {self.speedup}, the measurements say {significant(measured)}")
        return self


def measured_speedup(before: Quantity | None, after: Quantity | None) -> float | None:
    """Ratio of times, or of rates the other way round; ``None`` if a measurement is missing.

    Raises:
        ValueError: the units differ or a value is not positive.
    """
    if before is None or after is None:
        return None
    if before.unit != after.unit:
        raise ValueError(f"measured in {before.unit} before and in {after.unit} after")
    if before.value <= 0 or after.value <= 0:
        raise ValueError("a measurement is not positive")
    return before.value / after.value if before.unit == _SECONDS else after.value / before.value


def size_class(parameters: float | None) -> str | None:
    """The class of a model of so many parameters."""
    if parameters is None:
        return None
    return next((name for limit, name in _SIZE_LIMITS if parameters < limit), _LARGEST_SIZE)


def title_of(what: str, before: Plan, after: Plan, others: tuple[str, ...], outcome: Outcome, fitted: bool) -> str:
    """One line: the run, the change and its outcome; ``fitted`` says whether the run before it fitted."""
    ends = {Outcome.IMPROVED: "faster" if fitted else "fits", Outcome.SLOWER: "slower"}
    meshes = mesh_of(before), mesh_of(after)
    change = f"{meshes[0]} → {meshes[1]}" if meshes[0] != meshes[1] else f"{meshes[0]}, {'; '.join(others)}"
    return plain(f"{what}: {change}: {ends.get(outcome, 'out of memory')}", 200)


def summary_of(
    what: str,
    before: Plan,
    after: Plan,
    outcome: Outcome,
    measured: tuple[Quantity | None, Quantity | None],
    speedup: float | None,
    others: tuple[str, ...],
) -> str:
    """A few sentences: how the mesh changed, what that did, and what else changed."""
    moves = "; ".join(axis_changes(before, after)) or "the mesh stayed as it was"
    sentences = [f"{what}: {moves}.", _effect(outcome, measured, speedup)]
    if others:
        sentences.append(f"Changed besides the mesh: {'; '.join(others)}.")
    return " ".join(sentences)


def _effect(outcome: Outcome, measured: tuple[Quantity | None, Quantity | None], speedup: float | None) -> str:
    before, after = measured
    if outcome is Outcome.OUT_OF_MEMORY:
        return "It ran out of memory" + (f"; before, it ran at {_speed(before)}." if before else ".")
    if before is None:
        return "Before it ran out of memory; now it fits" + (f" and runs at {_speed(after)}." if after else ".")
    times = f" ({significant(speedup)}× as fast)" if speedup else ""
    return (
        f"It went from {_speed(before)} to {_speed(after)}{times}." if after else f"It became {outcome.value}{times}."
    )


def _speed(quantity: Quantity | None) -> str:
    if quantity is None:
        return "an unknown speed"
    if quantity.unit == "s":
        return f"{format_seconds(quantity.value)} a step"
    return format_rate(quantity.value, quantity.unit)
