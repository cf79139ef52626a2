"""What a log says happened in a run: steps and which are steady, rates, memory, and how it ended."""

from collections.abc import Sequence
from statistics import median, pstdev
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

from asap.core.errors import ConfigError
from asap.core.units import counted, format_bytes, format_seconds

EndingKind = Literal[
    "out_of_memory", "out_of_host_memory", "collective_timeout", "communication_error", "not_a_number",
    "hardware_error", "out_of_data", "refused_settings", "stopped", "crashed", "completed", "running",
]  # fmt: skip


class Allocation(BaseModel):
    """One of the largest tensors of a program that does not fit, as XLA lists them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size_bytes: PositiveFloat
    shape: str | None = Field(default=None, description="such as bf16[32,4096,4096]")
    operation: str | None = Field(default=None, description="path of the operation in the traced program")

    def __str__(self) -> str:
        parts = (self.shape, self.operation and f"of {self.operation}")
        return " ".join([format_bytes(self.size_bytes), *filter(None, parts)])


class Ending(BaseModel):
    """How a run ended, with the line that says so. Bytes are those of one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: EndingKind = Field(description="running: the log says nothing of an end")
    line: str | None = Field(default=None, description="the line of the log that says so")
    line_number: PositiveInt | None = None
    before_first_step: bool = Field(default=False, description="no step was completed")
    needed_bytes: PositiveFloat | None = Field(default=None, description="what the compiler says the program needs")
    requested_bytes: PositiveFloat | None = Field(default=None, description="the allocation that failed")
    in_use_bytes: PositiveFloat | None = Field(default=None, description="held by the process when it failed")
    free_bytes: PositiveFloat | None = None
    capacity_bytes: PositiveFloat | None = Field(default=None, description="memory of the device")
    operation: str | None = Field(default=None, description="the collective that timed out")
    exception: str | None = None
    largest: tuple[Allocation, ...] = Field(default=(), description="largest allocations that XLA lists, largest first")

    def __str__(self) -> str:
        text = {"out_of_memory": "ran out of device memory", "out_of_host_memory": "ran out of host memory"}.get(
            self.kind, self.kind.replace("_", " ")
        )
        if self.kind == "out_of_memory":
            text += self._figures()
        if self.operation:
            text += f" in {self.operation}"
        return f"{text}, before the first step" if self.before_first_step and self.kind != "running" else text

    def note(self, file: str) -> tuple[str, ...]:
        """How the run of a log ended; nothing where it goes on or was completed."""
        if self.kind in ("running", "completed"):
            return ()
        verb = "was ended from outside" if self.kind == "stopped" else "ended"
        return (f"the run of {file} {verb}: {self} (line {self.line_number})",)

    def _figures(self) -> str:
        """What was needed of what there is; of an allocation whose neighbours are not known, its own size."""
        held = self.in_use_bytes or (self.capacity_bytes or 0) - (self.free_bytes or self.capacity_bytes or 0)
        needs = self.needed_bytes or (held + (self.requested_bytes or 0) if held else None)
        if needs and self.capacity_bytes and held and self.requested_bytes and needs < self.capacity_bytes:
            of = f"{format_bytes(held)}, of {format_bytes(self.capacity_bytes)}"  # the rest is fragments, or another's
            return f": allocating {format_bytes(self.requested_bytes)} beside {of}"
        if needs and self.capacity_bytes:
            least = "" if self.needed_bytes else "at least "
            return f": needs {least}{format_bytes(needs)} of {format_bytes(self.capacity_bytes)}"
        return f": allocating {format_bytes(self.requested_bytes)}" if self.requested_bytes else ""


class SlowStep(BaseModel):
    """A step far above the median."""

    model_config = ConfigDict(frozen=True)

    step: int | None
    seconds: PositiveFloat


FEWEST = 3


class StepTimes(BaseModel):
    """Times of the last run's steps, in seconds."""

    model_config = ConfigDict(frozen=True)

    median: PositiveFloat | None = Field(default=None, description="of the steady steps")
    least: PositiveFloat | None = None
    most: PositiveFloat | None = None
    deviation: float | None = Field(default=None, description="standard deviation of the steady steps")
    steps: NonNegativeInt = Field(default=0, description="steady steps")
    left_out: NonNegativeInt = Field(default=0, description="steps of the warm-up")
    slow: tuple[SlowStep, ...] = Field(default=(), description="the slowest of those over 1.5 times the median")
    slow_steps: NonNegativeInt = Field(default=0, description="steps of over 1.5 times the median, which are left out")

    @property
    def slowest(self) -> str:
        """``9.11 s (step 4), 8.7 s (step 9) and 12 more``."""
        listed = [format_seconds(one.seconds) + (f" (step {one.step})" if one.step else "") for one in self.slow]
        rest = self.slow_steps - len(listed)
        return ", ".join(listed) + (f" and {rest:,} more" if rest > 0 else "")

    def measured(
        self, source: str, tokens_per_device: float | None = None, *, where: str | None = None, fewest: int = FEWEST
    ) -> "MeasuredStep":
        """The median of the steady steps; raises ConfigError where there are fewer of them."""
        if self.steps < fewest or self.median is None:
            reason = f"has {counted(self.steps, 'steady step')} behind the warm-up; {fewest} are needed"
            raise ConfigError(reason, where=where or source)
        said = {name: getattr(self, name) for name in ("least", "most", "deviation", "steps", "left_out")}
        return MeasuredStep(seconds=self.median, tokens_per_device=tokens_per_device, source=source, **said)


class Measured(BaseModel):
    """What the log says was measured. Rates and memory are those of one device where their names say so."""

    model_config = ConfigDict(frozen=True)

    step: StepTimes = StepTimes()
    tokens_per_second_per_device: PositiveFloat | None = None
    tokens_per_second: PositiveFloat | None = Field(default=None, description="of the whole job")
    tokens_per_second_as_said: PositiveFloat | None = Field(default=None, description="of a device, or of the job")
    samples_per_second: PositiveFloat | None = Field(default=None, description="of the whole job")
    tflops_per_device: PositiveFloat | None = Field(default=None, description="as the program counts FLOPs")
    mfu: PositiveFloat | None = Field(default=None, description="as the program counts it")
    peak_memory_bytes: PositiveFloat | None = Field(default=None, description="allocated on the fullest device")
    reserved_memory_bytes: PositiveFloat | None = Field(default=None, description="held by the allocator")
    compiled_memory_bytes: PositiveFloat | None = Field(default=None, description="as XLA counts the program")
    steps_of_bar: PositiveInt | None = Field(default=None, description="that the progress bar counts which times steps")


class Observed(BaseModel):
    """What a log says happened in a run: for the record."""

    model_config = ConfigDict(frozen=True)

    file: str
    measured: Measured = Measured()
    ending: Ending


class MeasuredStep(BaseModel):
    """The time of a training step, and what is known of its spread. Seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: PositiveFloat
    least: PositiveFloat | None = None
    most: PositiveFloat | None = None
    deviation: float | None = None
    steps: PositiveInt | None = Field(default=None, description="steady steps that it was taken from")
    left_out: int = Field(default=0, description="steps of the warm-up")
    tokens_per_device: PositiveFloat | None = Field(default=None, description="of one step, as the log counts them")
    source: str

    def __str__(self) -> str:
        """``2.35 s, the median of 8 steady steps (2.32 s to 2.39 s; 2 of the warm-up left out)``."""
        time = format_seconds(self.seconds)
        if self.steps is None or self.least is None or self.most is None:
            return time
        spread = f"{format_seconds(self.least)} to {format_seconds(self.most)}"
        return f"{time}, the median of {self.steps} steady steps ({spread}; {self.left_out} of the warm-up left out)"


WARM = 1.1  # a step of the warm-up takes this many times the median of the second half
SLOW = 1.5  # a step of evaluation, checkpoint or a stall takes this many times the median
_LATE = 50  # lines of steps that a log lacks at its beginning are more than any warm-up
_MOST_SLOW = 5


def step_times(times: Sequence[tuple[int | None, float]]) -> StepTimes:
    """Median and spread of the steady steps: those behind the warm-up that no evaluation or checkpoint made slow.

    The warm-up ends before the first step that takes at most a tenth longer than the median of the second half; of all,
    where there are few and the log begins long behind the start of the run.

    Args:
        times: number and seconds of each step, in their order.
    """
    if not times:
        return StepTimes()
    behind = list(times[len(times) - steady_count(times) :])
    usual = median(seconds for _, seconds in behind)
    slow = sorted((one for one in behind if one[1] > SLOW * usual), key=lambda one: -one[1])
    steady = [seconds for _, seconds in behind if seconds <= SLOW * usual]
    return StepTimes(
        median=median(steady), least=min(steady), most=max(steady), deviation=pstdev(steady), steps=len(steady),
        left_out=len(times) - len(behind),
        slow=tuple(SlowStep(step=step, seconds=seconds) for step, seconds in slow[:_MOST_SLOW]),
        slow_steps=len(slow),
    )  # fmt: skip


def steady_count(times: Sequence[tuple[int | None, float]]) -> int:
    """Steps behind the warm-up."""
    if len(times) == 1:
        return 1
    (first, _), (second, _) = times[:2]
    is_late = first is not None and second is not None and first > _LATE * abs(second - first)
    half = 0 if is_late and len(times) < 2 * FEWEST - 1 else len(times) // 2
    usual = median(seconds for _, seconds in times[half:])
    warm = next((n for n, (_, seconds) in enumerate(times) if seconds <= WARM * usual), 0)
    # asynchronous dispatch: the first step behind compilation returns at once
    skip = next((n for n, (_, seconds) in enumerate(times[warm:]) if seconds > usual / 2), 0)
    return len(times) - warm - skip


def steady_step(times: Sequence[float], source: str) -> MeasuredStep:
    """The median of the steady steps, of times in seconds; raises ConfigError where there are fewer than three."""
    return step_times([(None, seconds) for seconds in times]).measured(source)
