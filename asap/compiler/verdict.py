"""The answer of a verification: a contract for other tools (``asap.verification/1``)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.compiler.request import Effort, Memory, Status
from asap.core.provenance import Quantity
from asap.plans import Plan

SCHEMA = "asap.verification/1"


class CollectiveRow(BaseModel):
    """Collectives of one kind along one mesh axis, of one step and one device."""

    model_config = ConfigDict(frozen=True)

    kind: str
    axes: str = Field(description="mesh axes joined by +; (part): only some devices of the axis")
    form: Literal["synchronous", "asynchronous"]
    count: float
    size_bytes: float = Field(description="of the larger side, summed over the step")
    busy_s: float | None = Field(description="by link load; the compiler gives collectives no time")
    exposed_s: float | None
    algorithms: tuple[str, ...] = ()


class ComputeRow(BaseModel):
    """Operations of one category, of one step and one device."""

    model_config = ConfigDict(frozen=True)

    category: str
    count: float
    seconds: float
    unestimated: float = Field(description="kernels of which only the bytes are known, so that they may take longer")


class Expected(BaseModel):
    """What our model had predicted for the same plan."""

    model_config = ConfigDict(frozen=True)

    step_time: Quantity | None = None
    memory: Quantity | None = None


class Verification(BaseModel):
    """What the compiler made of a training step under a plan. What is not known is ``None``, and ``notes`` say why."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.verification/1"] = Field(default=SCHEMA, alias="schema")
    experiment: str | None = None
    program: str = Field(description="the reference step of a model, or the user's function")
    plan: Plan
    hardware: str
    devices: int
    status: Status
    fits: bool | None = Field(description="None: the compiler gave no answer")
    verdict: str = Field(description="one sentence")
    capacity_bytes: float = Field(description="HBM of one device")
    needed_bytes: float | None = Field(default=None, description="HBM that it would take, where it does not fit")
    memory: Memory | None = None
    argument_bytes: int | None = Field(default=None, description="of one device, where only that is known of memory")
    step_time: Quantity | None = Field(default=None, description="seconds, from a timeline over the schedule")
    calibrated_step_time: Quantity | None = Field(
        default=None,
        description="by a constant of the chip, longer with each slice; None where no run is of the chip",
    )
    collectives: tuple[CollectiveRow, ...] = ()
    compute: tuple[ComputeRow, ...] = ()
    expected: Expected = Expected()
    differences: tuple[str, ...] = Field(default=(), description="from our prediction, largest first")
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = Field(default=(), description="of the compiler")
    effort: Effort = Field(default="full", description="of the compiler; times of different efforts do not compare")
    versions: dict[str, str] = Field(default_factory=dict)
    compile_s: float = Field(default=0.0, description="wall time of the compilation; also of one that was kept")

    def to_json(self) -> str:
        """The contract as text."""
        return self.model_dump_json(by_alias=True, indent=2)
