"""What is expected of a plan: time by part, memory by part, and how far it can be believed."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Quantity
from asap.plans import Plan

Method = Literal["architecture", "anchored_architecture", "profile_ratios", "trace_replay"]
"""Step model alone; step model anchored to a measured step; measured shares scaled by ratios of degrees; the execution
graph of the recorded run, with each class of kernels scaled by the step model."""

STATES = ("parameters", "gradients", "optimizer")
FIT_CONFIDENCE = 0.7
"""Odds of a plan that is said to fit: a run that dies against a plan that is missed. Judgement: what is proposed."""
FitVerdict = Literal["fits", "may not fit", "does not fit"]


class TimePart(BaseModel):
    """A share of the step: how long it runs, and how much of that nothing hides."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="compute, hbm, all-gather, …, pipeline bubble, optimizer, host, other")
    axis: str | None = Field(default=None, description="mesh axis of a collective")
    busy_s: float = Field(description="seconds per step in which it runs")
    exposed_s: float = Field(description="seconds per step that it adds to the step time")


class MemoryPart(BaseModel):
    """A share of the HBM of one device."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="parameters, gradients, optimizer, activations, temporaries, …")
    size_bytes: float


class MemoryPrediction(BaseModel):
    """HBM of the fullest device."""

    model_config = ConfigDict(frozen=True)

    total: Quantity
    capacity_bytes: float
    fits: bool
    probability_fits: float | None = Field(
        default=None, description="that it fits, where it is modelled; None: known to fit or not"
    )
    parts: tuple[MemoryPart, ...] = ()
    host_bytes: float = Field(default=0.0, description="what one device keeps in host memory")
    host_capacity_bytes: float | None = Field(default=None, description="of one device; None: not known")
    unsaid: str = Field(default="", description="what is not stated and decides whether it fits")

    @property
    def fits_host(self) -> bool:
        """Whether host memory holds what is offloaded."""
        return self.host_capacity_bytes is None or self.host_bytes <= self.host_capacity_bytes

    @property
    def verdict(self) -> FitVerdict:
        """In words; it may not fit where neither outcome is likely enough to be said."""
        if self.fits:
            return "fits"
        close = self.fits_host and self.probability_fits is not None and self.probability_fits > 1 - FIT_CONFIDENCE
        return "may not fit" if close else "does not fit"


OPTIMIZER_ON_CPU = "optimizer on the CPU"
COMPILED = "compiled: "
"""How the note begins that holds the compiler's verdict on the plan."""
OWN_RUNS = "your runs: "
"""How the note begins that says what the team's own runs changed."""


class Prediction(BaseModel):
    """The engine's expectation for one plan. What cannot be predicted is ``None``, and ``notes`` say why."""

    model_config = ConfigDict(frozen=True)

    plan: Plan
    method: Method
    step_time: Quantity | None = Field(default=None, description="seconds, with its 90 % interval")
    relative_step_time: Quantity | None = Field(
        default=None,
        description="step time over the incumbent's, for as many tokens, with its 90 % interval; below 1 is faster",
    )
    parts: tuple[TimePart, ...] = ()
    scale: float = Field(default=1.0, description="factor on the modelled parts with which they make up the step")
    shares: dict[str, float] = Field(default={}, description="of a step: matmul, attention, loss; their recomputation")
    communication: Quantity | None = Field(default=None, description="exposed collectives over step time, fraction")
    memory: MemoryPrediction | None = None
    tokens_per_second: Quantity | None = None
    mfu: Quantity | None = Field(default=None, description="model FLOP utilisation, fraction")
    region_distance: float | None = Field(
        default=None,
        description="how far the run lies outside the calibrated region, in widths of it; 0 inside, "
        "null where the step model was not used",
    )
    doublings: float | None = Field(
        default=None,
        description="factors of two that the mesh moves from axis to axis, from the plan that relative_step_time "
        "refers to; null without one",
    )
    notes: tuple[str, ...] = ()

    @property
    def own_runs(self) -> str | None:
        """What the team's own runs changed; ``None`` if they changed nothing."""
        return next((note for note in self.notes if note.startswith(OWN_RUNS)), None)

    @property
    def compiled(self) -> str | None:
        """Whose step was compiled under the plan, and the compiler's verdict; ``None`` if it was not asked."""
        return next((note.removeprefix(COMPILED) for note in self.notes if note.startswith(COMPILED)), None)
