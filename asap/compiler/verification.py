"""The answer of a verification: a contract for other tools (``asap.verification/2``)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.compiler.programs.request import CompiledMemory, Effort, Status
from asap.compiler.schedule.collectives import Execution
from asap.core.units import Quantity
from asap.plans import Plan

SCHEMA = "asap.verification/2"


class CollectiveRow(BaseModel):
    """Collectives of one kind along the same mesh axes, of one step and one device."""

    model_config = ConfigDict(frozen=True)

    kind: str
    axes: str = Field(description="mesh axes joined by +; (part): only some devices of the axis")
    execution: Execution
    count: float
    size_bytes: float = Field(description="of the larger of operand and result, summed over the step")
    busy_s: float | None = Field(description="modelled by link load: the compiler gives collectives no time")
    exposed_s: float | None
    algorithms: tuple[str, ...] = ()


class ComputeRow(BaseModel):
    """Operations of one category, of one step and one device."""

    model_config = ConfigDict(frozen=True)

    category: str
    count: float
    seconds: float
    unestimated: float = Field(description="unknown kernels: timed by their bytes alone, so they may take longer")


class PredictedStep(BaseModel):
    """Our prediction for the same plan."""

    model_config = ConfigDict(frozen=True)

    step_time: Quantity | None = None
    memory: Quantity | None = None


class Verification(BaseModel):
    """What the compiler made of a training step under a plan. What is unknown is ``None``, and ``notes`` say why."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.verification/2"] = Field(default=SCHEMA, alias="schema")
    experiment: str | None = None
    program: str = Field(description="the reference step of a model, MaxText's step, or the user's function")
    plan: Plan
    hardware: str
    devices: int
    status: Status
    fits: bool | None = Field(
        description="None: the compiler gave no answer, or least effort is too near the limit to tell"
    )
    verdict: str = Field(description="one sentence")
    capacity_bytes: float = Field(description="HBM of one device")
    needed_bytes: float | None = Field(default=None, description="HBM that it would take, where it does not fit")
    memory: CompiledMemory | None = None
    argument_bytes: int | None = Field(default=None, description="of one device, where nothing else is known of memory")
    step_time: Quantity | None = Field(default=None, description="seconds, from a simulation of the schedule")
    calibrated_step_time: Quantity | None = Field(
        default=None,
        description="times factors fitted on published runs; None for a chip without any, and below full effort",
    )
    collectives: tuple[CollectiveRow, ...] = ()
    compute: tuple[ComputeRow, ...] = ()
    expected: PredictedStep = PredictedStep()
    differences: tuple[str, ...] = Field(default=(), description="from our prediction, largest first")
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = Field(default=(), description="of the compiler")
    effort: Effort = Field(
        default="full", description="of the compiler; step times of different efforts are not comparable"
    )
    versions: dict[str, str] = Field(default_factory=dict)
    compile_s: float = Field(default=0.0, description="wall time of the compilation, also of a cached one")

    def to_json(self) -> str:
        """The contract as text."""
        return self.model_dump_json(by_alias=True, indent=2)
