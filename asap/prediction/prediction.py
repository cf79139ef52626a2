"""What is expected of a plan: time by part, memory by part, and how far it can be believed."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Quantity
from asap.plans import Plan

Method = Literal["architecture", "what_if", "calibrated_architecture"]


class TimePart(BaseModel):
    """A share of the step: how long it runs, and how much of that nothing hides."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="compute, hbm, all-gather, …, pipeline bubble, optimizer, host, other")
    axis: str | None = Field(default=None, description="mesh axis of a collective")
    busy_s: float = Field(description="seconds a step in which it runs")
    exposed_s: float = Field(description="seconds a step that it adds to the step time")


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
    parts: tuple[MemoryPart, ...] = ()


COMPILED = "compiled: "
"""How the note begins that holds the compiler's verdict on the plan."""


class Prediction(BaseModel):
    """The engine's expectation for one plan. What cannot be predicted is ``None``, and ``notes`` say why."""

    model_config = ConfigDict(frozen=True)

    plan: Plan
    method: Method
    step_time: Quantity | None = Field(default=None, description="seconds, with its 90 % interval")
    relative_step_time: Quantity | None = Field(
        default=None, description="step time over the incumbent's, with its 90 % interval; below 1 is faster"
    )
    parts: tuple[TimePart, ...] = ()
    communication: Quantity | None = Field(default=None, description="exposed collectives over step time, fraction")
    memory: MemoryPrediction | None = None
    tokens_per_second: Quantity | None = None
    mfu: Quantity | None = Field(default=None, description="model FLOP utilisation, fraction")
    distance: float = Field(default=0.0, description="from the calibrated region: 0 inside, 1 at its width outside")
    notes: tuple[str, ...] = ()

    @property
    def compiled(self) -> str | None:
        """Whose step was compiled under the plan, and the compiler's verdict; ``None`` if it was not asked."""
        return next((note.removeprefix(COMPILED) for note in self.notes if note.startswith(COMPILED)), None)
