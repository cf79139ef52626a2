"""A Plan: how one training step is laid out over the devices."""

import math
from typing import Any

from pydantic import BaseModel, Field, PositiveInt, ValidationError, model_validator

from asap.core.errors import PlanError
from asap.plans.axes import AXES, Axis, standard_degrees
from asap.plans.remat import Offload, Optimizer, Policy, Remat, SavedTensors, StatePrecision
from asap.plans.text import plan_fields

OF_WORKLOAD = (
    "sequence_parallel",
    "loss_chunks",
    "first_moment",
    "second_moment",
    "weight_precision",
    "optimizer",
    "global_batch",
)
"""Fields of a plan that replace what the workload says; ``None``: as the workload says."""
SETTINGS = ("microbatches", "pipeline_repeats", "remat", "offload", *OF_WORKLOAD)
"""Fields of a plan beside its meshes."""


class Mesh(BaseModel, frozen=True, extra="forbid"):
    """Degree of parallelism along each axis, over one kind of network."""

    replica: PositiveInt = Field(default=1, description="plain data parallelism")
    data: PositiveInt = Field(default=1, description="data parallelism with sharded parameters (FSDP)")
    seq: PositiveInt = Field(default=1, description="sequence or context parallelism")
    model: PositiveInt = Field(default=1, description="tensor parallelism")
    expert: PositiveInt = Field(default=1, description="expert parallelism")
    stage: PositiveInt = Field(default=1, description="pipeline stages")

    @model_validator(mode="before")
    @classmethod
    def _in_any_words(cls, degrees: Any) -> Any:
        return standard_degrees(degrees) if isinstance(degrees, dict) else degrees

    @property
    def devices(self) -> int:
        """Product of all degrees."""
        return math.prod(self.degrees)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees in the order of :data:`AXES`."""
        return (self.replica, self.data, self.seq, self.model, self.expert, self.stage)

    def __str__(self) -> str:
        return " ".join(f"{axis}={degree}" for axis, degree in zip(AXES, self.degrees, strict=True) if degree > 1)


class Plan(BaseModel, frozen=True, extra="forbid"):
    """A sharding configuration: meshes inside a slice (ICI) and between slices (DCN), and how a step runs."""

    ici: Mesh = Mesh()
    dcn: Mesh = Mesh()
    microbatches: PositiveInt | None = Field(
        default=None, description="slices of the batch: of the pipeline, or accumulated gradients; None: unknown"
    )
    pipeline_repeats: PositiveInt = Field(default=1, description="virtual stages a device (interleaved schedule)")
    remat: Policy | None = Field(default=None, description="None: unknown")
    offload: tuple[Offload, ...] = Field(default=(), description="what is kept in host memory")
    sequence_parallel: bool | None = Field(
        default=None,
        description="norms and residuals are split along the sequence beside tensor parallelism; None: as the workload"
        " says",
    )
    loss_chunks: PositiveInt | None = Field(
        default=None, description="parts in which logits and loss are computed; None: as the workload says"
    )
    first_moment: StatePrecision | None = Field(
        default=None, description="precision of Adam's first moment; None: as the workload says"
    )
    second_moment: StatePrecision | None = Field(
        default=None, description="precision of Adam's second moment; None: as the workload says"
    )
    weight_precision: StatePrecision | None = Field(
        default=None, description="in which JAX keeps parameters and their gradients; None: as the workload says"
    )
    optimizer: Optimizer | None = Field(default=None, description="None: as the workload says")
    global_batch: PositiveInt | None = Field(
        default=None, description="sequences in a step, whole job; None: as the workload says"
    )

    @property
    def devices(self) -> int:
        """Devices of the whole job."""
        return self.ici.devices * self.dcn.devices

    def degree(self, axis: Axis) -> int:
        """Total degree of an axis over ICI and DCN."""
        return int(getattr(self.ici, axis) * getattr(self.dcn, axis))

    @property
    def batch_shards(self) -> int:
        """Groups of devices that see different sequences: replica × data × expert."""
        return self.degree("replica") * self.degree("data") * self.degree("expert")

    @property
    def moves_activations(self) -> bool:
        """Whether activations go to host memory: inputs of layers, or tensors inside of them."""
        within = isinstance(self.remat, SavedTensors) and bool(self.remat.host)
        return self.moves_inputs or within

    @property
    def moves_inputs(self) -> bool:
        """Whether the inputs of layers go to host memory."""
        return "activations" in self.offload or self.remat is Remat.OFFLOAD

    def with_ici(self, **degrees: int) -> "Plan":
        """The same plan with some ICI degrees replaced."""
        return self.model_copy(update={"ici": Mesh(**{**self.ici.model_dump(), **degrees})})

    def completed_by(self, other: "Plan | None") -> "Plan":
        """The same plan, with the settings and the DCN mesh that it does not state taken from another."""
        if other is None:
            return self
        unstated = [name for name in SETTINGS if name not in self.model_fields_set]
        unstated += ["dcn"] if self.dcn == Mesh() else []
        return self.model_copy(update={name: getattr(other, name) for name in unstated})

    def __str__(self) -> str:
        terms = [str(self.ici)]
        terms += [f"dcn.{axis}={d}" for axis, d in zip(AXES, self.dcn.degrees, strict=True) if d > 1]
        if self.microbatches is not None:
            terms.append(f"microbatches={self.microbatches}")
        if self.pipeline_repeats > 1:
            terms.append(f"pipeline_repeats={self.pipeline_repeats}")
        if self.remat is not None:
            terms.append(f"remat={self.remat.value}")
        if self.offload:
            terms.append(f"offload={'+'.join(self.offload)}")
        said = ((name, getattr(self, name)) for name in OF_WORKLOAD)
        terms += [f"{name}={str(value).lower()}" for name, value in said if value is not None]
        return " ".join(term for term in terms if term) or "data=1"

    def beside(self, other: "Plan | None") -> str:
        """The text form that :meth:`completed_by` another plan leaves as it is: with what is taken back of that one."""
        terms = [str(self)]
        if other is not None and other.offload and not self.offload:
            terms.append("offload=none")
        if other is not None and other.pipeline_repeats > 1 and self.pipeline_repeats == 1:
            terms.append("pipeline_repeats=1")
        return " ".join(terms)

    @classmethod
    def parse(cls, text: str) -> "Plan":
        """Read the text form, in any vocabulary of :mod:`asap.plans.text`.

        Raises:
            PlanError: an unknown term, a repeated one, or a degree that is not a positive integer.
        """
        try:
            return cls.model_validate(plan_fields(text))
        except ValidationError as error:
            raise PlanError(error.errors()[0]["msg"], where=text) from error
