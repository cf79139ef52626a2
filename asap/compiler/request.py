"""What is asked of the compiler, and what it answered: the two documents that pass between processes."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import BadInputError
from asap.hardware import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from asap.plans.validity import Constraints, require_valid

SCHEMA = "asap.compiled/1"
TOPOLOGIES = ("v4", "v5e", "v5p", "v6e", "tpu7x")
"""Chips that libtpu describes without one being there."""

Status = Literal[
    "compiled", "sharded", "does_not_fit", "unwritten", "step_failed", "refused", "crashed", "timed_out",
    "out_of_host_memory",
]  # fmt: skip
"""``sharded``: XLA's CPU pipeline laid it out, which says nothing of time and little of memory. ``unwritten``: the
training step cannot express the plan."""

Effort = Literal["full", "reduced", "least"]
EFFORTS: dict[Effort, float] = {"full": 0.0, "reduced": -0.5, "least": -1.0}
"""Values of the compiler's ``exec_time_optimization_effort``. A reduced effort comes to an end where a full one takes
minutes for single instructions, as on v6e; the least is for HBM and collectives alone (docs/verify.md)."""

FULL_PRECISION = ("fp32", "float32")
"""Names of the precision that the reference step computes in where it is not bf16."""

_REFERENCE = (
    "attention", "decoder", "experts", "layout", "loss", "pipeline", "rematerialisation", "segments", "train_step",
)  # fmt: skip


class Request(BaseModel):
    """One program for one slice: the reference step of a model, MaxText's, or the user's own."""

    model_config = ConfigDict(frozen=True)

    chip: str
    topology: tuple[int, ...]
    slices: int
    plan: Plan
    model: Architecture | None = None
    workload: Workload = Workload()
    train_step: str | None = Field(default=None, description="package.module:function of the user")
    maxtext: dict[str, Any] | None = Field(default=None, description="settings of MaxText, to compile its own step")
    step_source: str = Field(default="", description="fingerprint of the user's source")
    python: str = Field(default="", description="the Python to compile with; this one by default")
    flags: tuple[str, ...] = Field(default=(), description="compiler flags")
    path: tuple[str, ...] = Field(default=(), description="where the user's packages lie")
    effort: Effort = Field(default="full", description="of the compiler; the least says nothing of time")

    @property
    def on_cpu(self) -> bool:
        """Whether no compiler for the chip can be had, so that XLA's CPU pipeline has to stand in."""
        return self.chip not in TOPOLOGIES

    @property
    def devices_per_slice(self) -> int:
        """JAX devices of one slice."""
        return self.plan.devices // self.slices

    @property
    def is_reference(self) -> bool:
        """Whether the program is the reference step."""
        return self.train_step is None and self.maxtext is None

    def fingerprint(self, versions: dict[str, str]) -> str:
        """Key of the answer: the same for the same program, plan, slice and compiler."""
        source = _reference_source() if self.is_reference else ""
        asked = self._as_written() if self.is_reference else self
        program = asked.model_dump_json(exclude={"path": True, "python": True, "model": {"name"}})
        text = SCHEMA + program + source + repr(sorted(versions.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _as_written(self) -> "Request":
        """With nothing of the workload and the plan that makes no other reference step."""
        work = self.workload
        workload = Workload(
            global_batch=work.global_batch,
            sequence_length=work.sequence_length,
            precision="fp32" if work.precision in FULL_PRECISION else None,
            weight_precision="bf16" if work.weight_precision == "bf16" else None,
            loss_chunks=work.loss_chunks if (work.loss_chunks or 1) > 1 else None,
            head_gathered_once=(work.head_gathered_once and (work.loss_chunks or 1) > 1) or None,
            scan_layers=False if work.scan_layers is False else None,
        )
        whole = self.plan.microbatches == 1 and self.plan.degree("stage") == 1
        microbatches = None if whole else self.plan.microbatches
        plan = self.plan.model_copy(update={"microbatches": microbatches, "remat": self.plan.remat or Remat.FULL})
        return self.model_copy(update={"workload": workload, "plan": plan})


@cache
def _reference_source() -> str:
    """Fingerprint of the reference step."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / f"{name}.py").read_bytes() for name in _REFERENCE)).hexdigest()


class Memory(BaseModel):
    """HBM of one device in bytes, as the compiler laid it out."""

    model_config = ConfigDict(frozen=True)

    peak: int = Field(description="with what lies in host memory at that moment")
    arguments: int
    outputs: int
    aliased: int = Field(description="outputs that take the place of arguments")
    temporaries: int
    code: int
    host: int = Field(description="arguments and temporaries in host memory")

    @property
    def hbm_peak(self) -> int | None:
        """The peak, if it is of HBM alone."""
        return None if self.host else self.peak


class Outcome(BaseModel):
    """What became of a request. ``program`` is HLO text, kept beside the document."""

    model_config = ConfigDict(frozen=True)

    status: Status
    message: str = ""
    needed_bytes: float | None = Field(default=None, description="HBM that the program would take, if it does not fit")
    available_bytes: float | None = None
    memory: Memory | None = None
    argument_bytes: int | None = Field(default=None, description="of one device, where only that is known of memory")
    places: tuple[tuple[int, ...], ...] = Field(default=(), description="chip coordinates of devices in mesh order")
    slices: tuple[int, ...] = Field(default=(), description="slice of each device in mesh order")
    axes: tuple[tuple[str, int], ...] = Field(default=(), description="of the mesh, where they are not the plan's")
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = Field(default=0.0, description="wall time of lowering and compiling")
    effort: Effort = "full"
    instead_of: str = Field(default="", description="what became of the full compilation, if one was tried before")
    program: str = Field(default="", exclude=True)


def make_request(
    hardware: Slice,
    plan: Plan,
    model: Architecture | None,
    workload: Workload,
    *,
    train_step: str | None = None,
    maxtext: dict[str, Any] | None = None,
    path: tuple[str, ...] = (),
    step_source: str = "",
    flags: tuple[str, ...] = (),
    effort: Effort = "full",
    python: str = "",
) -> Request:
    """A request for a slice of TPUs, or for GPUs.

    Raises:
        BadInputError: libtpu does not describe the TPU.
        PlanError: the plan is for another number of devices, or does not divide the model or the batch.
    """
    if hardware.topology is not None and hardware.chip.name not in TOPOLOGIES:
        reason = f"libtpu does not describe {hardware.chip.title}"
        raise BadInputError(reason, where=hardware.chip.name, hint=f"verified are {', '.join(TOPOLOGIES)}")
    slices = hardware.slices if hardware.topology else plan.dcn.devices
    request = Request(
        chip=hardware.chip.name, topology=hardware.topology or (), slices=hardware.slices, plan=plan, model=model,
        workload=workload, train_step=train_step, maxtext=maxtext, path=path, step_source=step_source, flags=flags,
        effort=effort, python=python,
    )  # fmt: skip
    known = workload if request.is_reference else Workload()
    require_valid(plan, Constraints.of(model, known, hardware.devices // slices, slices))
    return request
