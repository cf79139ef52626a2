"""What the compiler is asked for: one program for one slice. Passed to the child process as JSON."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import BadInputError
from asap.hardware import Slice
from asap.models import Architecture, Workload
from asap.models.workload import FULL_PRECISION
from asap.plans import Plan, Remat
from asap.plans.degrees import workload_under
from asap.plans.plan import OF_WORKLOAD
from asap.plans.validity import require_valid
from asap.stacks.constraints import constraints_of

SCHEMA = "asap.compiled/1"
TOPOLOGIES = ("v4", "v5e", "v5p", "v6e", "tpu7x")
"""Chips that libtpu describes without the hardware."""

Effort = Literal["full", "reduced", "least"]
EFFORTS: dict[Effort, float] = {"full": 0.0, "reduced": -0.5, "least": -1.0}
"""Values of the compiler's ``exec_time_optimization_effort``. ``reduced`` finishes where ``full`` spends minutes on
single instructions, as on v6e; ``least`` is for HBM and collectives only (docs/verify.md)."""
LEVELS: dict[Effort, str] = {"full": "UNKNOWN", "reduced": "O1", "least": "O0"}
"""The same as values of ``optimization_level``, which JAX has instead since 0.11."""


class CompileRequest(BaseModel):
    """One program for one slice: the reference step of a model, MaxText's, or the user's own."""

    model_config = ConfigDict(frozen=True)

    chip: str
    topology: tuple[int, ...]
    slices: int
    plan: Plan
    model: Architecture | None = None
    workload: Workload = Workload()
    train_step: str | None = Field(default=None, description="package.module:function of the user")
    mapping: str = Field(
        default="",
        description="lines of a mapping program: of an algorithm all, for the reference step those beyond the plan",
    )
    problem: dict[str, int] | None = Field(
        default=None, description="sizes of the distributed algorithm that the mapping program chooses; null: a step"
    )
    maxtext: dict[str, Any] | None = Field(default=None, description="MaxText settings, to compile MaxText's own step")
    step_source: str = Field(default="", description="SHA-256 of the sources of the user's step")
    python: str = Field(default="", description="interpreter to compile with; this one by default")
    flags: tuple[str, ...] = Field(default=(), description="compiler flags")
    path: tuple[str, ...] = Field(default=(), description="import path of the user's packages")
    effort: Effort = Field(default="full", description="of the compiler; least gives no step time")

    @property
    def on_cpu(self) -> bool:
        """Whether XLA's CPU pipeline stands in, because no compiler for the chip runs without the chip."""
        return self.chip not in TOPOLOGIES

    @property
    def devices_per_slice(self) -> int:
        """JAX devices of one slice."""
        return self.plan.devices // self.slices

    @property
    def is_reference(self) -> bool:
        """Whether the program is the reference step."""
        return self.train_step is None and self.maxtext is None and self.problem is None

    def fingerprint(self, versions: dict[str, str]) -> str:
        """Cache key: equal for the same program, plan, slice, flags and compiler version."""
        source = _sources("compiler/reference") if self.is_reference else ""
        source += _sources("mapping") if self.mapping else ""
        source += _sources("compiler/algorithms") if self.problem is not None else ""
        canonical = self._canonical() if self.is_reference else self
        program = canonical.model_dump_json(
            exclude={"path": True, "python": True, "model": {"name"}, "plan": set(OF_WORKLOAD)}
        )
        text = SCHEMA + program + source + repr(sorted(versions.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _canonical(self) -> "CompileRequest":
        """Without what of workload and plan does not change the reference step."""
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
        one_batch = self.plan.microbatches == 1 and self.plan.degree("stage") == 1
        microbatches = None if one_batch else self.plan.microbatches
        plan = self.plan.model_copy(update={"microbatches": microbatches, "remat": self.plan.remat or Remat.FULL})
        return self.model_copy(update={"workload": workload, "plan": plan})


@cache
def _sources(room: str) -> str:
    """SHA-256 of the sources of a room: every file of its folder."""
    sources = sorted((Path(__file__).parents[2] / room).rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def make_request(
    hardware: Slice,
    plan: Plan,
    model: Architecture | None,
    workload: Workload,
    *,
    train_step: str | None = None,
    mapping: str = "",
    maxtext: dict[str, Any] | None = None,
    path: tuple[str, ...] = (),
    step_source: str = "",
    flags: tuple[str, ...] = (),
    effort: Effort = "full",
    python: str = "",
) -> CompileRequest:
    """A request for a slice of TPUs, or for GPUs.

    Raises:
        BadInputError: libtpu does not describe the TPU.
        PlanError: the plan is for another number of devices, or does not divide the model or the batch.
    """
    if hardware.topology is not None and hardware.chip.name not in TOPOLOGIES:
        reason = f"libtpu does not describe {hardware.chip.title}"
        raise BadInputError(reason, where=hardware.chip.name, hint=f"supported: {', '.join(TOPOLOGIES)}")
    slices = hardware.slices if hardware.topology else plan.dcn.devices
    request = CompileRequest(
        chip=hardware.chip.name, topology=hardware.topology or (), slices=hardware.slices, plan=plan, model=model,
        workload=workload_under(plan, workload), train_step=train_step, mapping=mapping, maxtext=maxtext, path=path,
        step_source=step_source, flags=flags,
        effort=effort, python=python,
    )  # fmt: skip
    known = workload if request.is_reference else Workload()
    require_valid(plan, constraints_of(model, known, hardware.devices // slices, slices))
    return request


Status = Literal[
    "compiled", "sharded", "does_not_fit", "not_expressible", "step_failed", "refused", "crashed", "timed_out",
    "out_of_host_memory",
]  # fmt: skip
"""``sharded``: partitioned by XLA's CPU pipeline, which gives no time and little about memory. ``not_expressible``: the
training step does not support the plan, so nothing was compiled."""


class CompiledMemory(BaseModel):
    """Memory of one device in bytes, as the compiler allocated it."""

    model_config = ConfigDict(frozen=True)

    peak: int = Field(description="including host memory in use at that moment")
    arguments: int
    outputs: int
    aliased: int = Field(description="outputs that reuse the buffers of arguments")
    temporaries: int
    code: int
    host: int = Field(description="arguments and temporaries in host memory")

    @property
    def hbm_peak(self) -> int | None:
        """The peak; ``None`` where it includes host memory."""
        return None if self.host else self.peak


class CompileOutcome(BaseModel):
    """The answer to a request. ``program`` is scheduled HLO text, stored in a file of its own."""

    model_config = ConfigDict(frozen=True)

    status: Status
    message: str = ""
    needed_bytes: float | None = Field(
        default=None, description="HBM that the program would take, where it does not fit"
    )
    available_bytes: float | None = None
    memory: CompiledMemory | None = None
    argument_bytes: int | None = Field(default=None, description="of one device, where nothing else is known of memory")
    coordinates: tuple[tuple[int, ...], ...] = Field(
        default=(), description="chip coordinates of the devices in mesh order"
    )
    slices: tuple[int, ...] = Field(default=(), description="slice of each device in mesh order")
    axes: tuple[tuple[str, int], ...] = Field(default=(), description="mesh axes, where they are not the plan's")
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = Field(default=0.0, description="wall time of lowering and compiling")
    effort: Effort = "full"
    full_effort_failure: str = Field(
        default="", description="why the compilation with full effort, tried first, gave no answer"
    )
    program: str = Field(default="", exclude=True)
