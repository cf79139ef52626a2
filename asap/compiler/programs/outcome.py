"""What the compiler answered. Passed back from the child process as JSON, and kept in the cache."""

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from asap.compiler.programs.request import Effort

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
        default=(),
        validation_alias=AliasChoices("coordinates", "places"),
        description="chip coordinates of the devices in mesh order",
    )
    slices: tuple[int, ...] = Field(default=(), description="slice of each device in mesh order")
    axes: tuple[tuple[str, int], ...] = Field(default=(), description="mesh axes, where they are not the plan's")
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = Field(default=0.0, description="wall time of lowering and compiling")
    effort: Effort = "full"
    full_effort_failure: str = Field(
        default="",
        validation_alias=AliasChoices("full_effort_failure", "instead_of"),
        description="why the compilation with full effort, tried first, gave no answer",
    )
    program: str = Field(default="", exclude=True)
