"""The facts of a profile. Times are seconds of one device in one step where the profile has steps.

``None`` is unknown. Where a fact could not be had, ``gaps`` says what and which capture would give it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Provenance

Bound = Literal["compute", "hbm", "vmem", "host", "unknown"]
CollectiveKind = Literal[
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "send-recv",
]
Extent = Literal["step", "window"]
Trait = Literal["recomputed", "casting", "misaligned", "small"]
"""Done again for the backward pass; from one type to another; on dimensions that are no multiple of 8; a collective of
less than a MiB, which latency bounds and not bandwidth."""


@dataclass(frozen=True)
class ProfileRun:
    """One recording: a file a host, and what the reader should know about the choice."""

    path: Path
    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stat().st_size for file in self.files)


class Gap(BaseModel):
    """Something that the profile does not tell."""

    model_config = ConfigDict(frozen=True)

    what: str = Field(description="the missing fact, as a noun; after a colon why it is missing")
    capture: str | None = Field(default=None, description="the setting or command that would record it")


class Collective(BaseModel):
    """All collectives of one kind."""

    model_config = ConfigDict(frozen=True)

    kind: CollectiveKind
    fraction: float = Field(description="of the step time, 0 to 1")
    time_s: float | None = Field(default=None, description="per device and step (or window)")
    occurrences: float | None = None


class Kpis(BaseModel):
    """How the run is doing, in a handful of numbers."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None = None
    step_time_min_s: float | None = None
    step_time_max_s: float | None = None
    step_time_stddev_s: float | None = None
    steps: int | None = Field(default=None, description="steps that the profile holds")
    duty_cycle: float | None = Field(default=None, description="0 to 1; collectives count as busy")
    idle: float | None = Field(default=None, description="share of the time in which the device does nothing")
    input: float | None = Field(default=None, description="share of the step that waits for input or the host")
    communication: float | None = Field(default=None, description="share of the time in collectives, 0 to 1")
    collectives: tuple[Collective, ...] = ()
    goodput: float | None = Field(default=None, description="from the record or its logs, never from the profile")


class Operation(BaseModel):
    """One HLO operation: its time, and where it stands under the roofline."""

    model_config = ConfigDict(frozen=True)

    name: str
    category: str
    fraction: float = Field(description="self time as a share of the step or window, 0 to 1")
    time_s: float | None = Field(default=None, description="self time per device and step (or window)")
    occurrences: float | None = Field(default=None, description="per device and step (or window)")
    flops: float | None = Field(default=None, description="FLOPs per device and step (or window)")
    flop_rate: float | None = Field(default=None, description="FLOP/s")
    flop_utilisation: float | None = Field(default=None, description="of the peak, 0 to 1")
    bytes_accessed: float | None = Field(default=None, description="HBM bytes per device and step (or window)")
    memory_bandwidth: float | None = Field(
        default=None, description="bytes/s; of a host copy, over the link to the host"
    )
    memory_utilisation: float | None = Field(default=None, description="of the peak HBM bandwidth, 0 to 1")
    roofline_efficiency: float | None = Field(default=None, description="of the bound that applies; may exceed 1")
    bound: Bound = "unknown"
    bound_by_name: bool = Field(default=False, description="the bound is a guess from the name, not measured")
    operator: str | None = Field(default=None, description="of PyTorch that launched it; of JAX its path")
    precision: str | None = Field(default=None, description="of its inputs: bf16, fp8, fp32, …")
    traits: tuple[Trait, ...] = ()
    kernels: tuple[str, ...] = Field(default=(), exclude=True, description="of a GPU that it starts")
    opaque: bool = Field(
        default=False, description="a custom call that reports neither FLOPs nor a bound; its name may tell one"
    )
    shape: str | None = Field(default=None, description="result shape as HLO prints it")
    source: str | None = Field(default=None, description="file and line of the user's code")
    collective: CollectiveKind | None = None
    collective_wait: bool = Field(default=False, description="the -done half: exposed waiting for a transfer")
    host_copy: bool = Field(default=False, description="copies between HBM and host memory, or waits for such a copy")

    @property
    def is_collective(self) -> bool:
        """Whether it moves data between devices, also where its kind is not known."""
        return self.collective is not None or self.collective_wait

    @property
    def recoverable(self) -> float | None:
        """Share of the step or window that it would save on the roofline; ``None`` where its efficiency is unknown."""
        if self.roofline_efficiency is None or self.opaque:
            return None
        return self.fraction * max(1 - self.roofline_efficiency, 0.0)


class Roofline(BaseModel):
    """The whole program under the roofline of its device."""

    model_config = ConfigDict(frozen=True)

    peak_flop_rate: float | None = Field(default=None, description="FLOP/s of one core")
    peak_hbm_bandwidth: float | None = Field(default=None, description="bytes/s of one core")
    ridge_point: float | None = Field(default=None, description="FLOP per byte where the two meet")
    operational_intensity: float | None = Field(default=None, description="FLOP per HBM byte of the program")
    program_bound: Bound = "unknown"
    program_efficiency: float | None = None


class Total(BaseModel):
    """What all operations of one sort take together."""

    model_config = ConfigDict(frozen=True)

    name: str
    fraction: float = Field(description="of the step or window, 0 to 1")


class Profile(BaseModel):
    """Measured (or stated) facts of one run."""

    model_config = ConfigDict(frozen=True)

    source: str = Field(description="where the facts come from: the profile's path, or who stated them")
    stated: bool = Field(default=False, description="facts copied from a report, not read from a profile")
    extent: Extent = Field(default="step", description="what times are per: a training step, or the whole window")
    framework: Literal["pytorch", "xla"] | None = Field(default=None, description="what recorded it")
    device_type: str | None = None
    devices: int | None = None
    hosts: int | None = None
    kpis: Kpis = Kpis()
    operations: tuple[Operation, ...] = Field(default=(), description="longest self time first")
    modules: tuple[Total, ...] = Field(default=(), description="time by module of the model, where it is recorded")
    host: dict[str, float] = Field(
        default_factory=dict, description="share of the time that the device waits for the host, by what the host does"
    )
    roofline: Roofline = Roofline()
    peak_hbm_bytes: float | None = Field(default=None, description="highest HBM use of one device, if recorded")
    hbm_capacity_bytes: float | None = None
    gaps: tuple[Gap, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def provenance(self) -> Provenance:
        """Measured by a profile or by the steps of a log, or stated by a report."""
        return Provenance.STATED if self.stated and not self.kpis.steps else Provenance.MEASURED

    @property
    def extent_s(self) -> float | None:
        """Seconds of the step or window that fractions are of; ``None`` where no operation has a time."""
        timed = (one.time_s / one.fraction for one in self.operations if one.time_s and one.fraction)
        return next(timed, None)

    @property
    def categories(self) -> tuple[Total, ...]:
        """Time of the operations by category, the most first."""
        names = dict.fromkeys(operation.category for operation in self.operations)
        totals = (
            Total(name=name, fraction=sum(one.fraction for one in self.operations if one.category == name))
            for name in names
        )
        return tuple(sorted(totals, key=lambda total: total.fraction, reverse=True))
