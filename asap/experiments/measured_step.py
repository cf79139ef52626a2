"""A measured step time without a profile: as somebody says it, or as a training log shows it."""

import re
from pathlib import Path
from statistics import median, pstdev

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from asap.core.errors import ConfigError, UsageError
from asap.core.files import is_file, user_path
from asap.core.text import plain
from asap.core.units import format_seconds
from asap.experiments.files.documents import read_text
from asap.experiments.step_log import StepLog

_SAID = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|sec|seconds|ms|min)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "min": 60.0}
_WRITTEN = (
    "MaxText writes 'completed step: 5, seconds: 2.31', Megatron-LM 'elapsed time per iteration (ms): 2310',"
    " torchtitan 'step: 5 … tps: 1,234'"
)
_LARGEST_LOG = 50_000_000
_FEWEST = 3
_WARM = 1.1
"""A step of the warm-up takes this many times the median of the second half."""


class TokensUnknownError(ConfigError):
    """A log counts tokens a second, and how many a step has is not known."""


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


def read_measured_step(said: str, tokens: float | None = None) -> MeasuredStep:
    """``2.31s``, ``2310 ms``, or the path of a training log.

    Args:
        said: the one or the other.
        tokens: of a device in a step, where they are known: torchtitan logs a rate.

    Raises:
        UsageError: it is neither a time nor a file.
        ConfigError: the log has no steps, or too few behind the warm-up.
    """
    found = _SAID.fullmatch(said.strip())
    if found:
        seconds = float(found[1]) * _UNITS[found[2]]
        if seconds <= 0:
            raise UsageError("a step time must be above zero", where=f"--step-time {plain(said, 40)}")
        return MeasuredStep(seconds=seconds, source="the user (--step-time)")
    path = user_path(said)
    if not is_file(path):
        where = f"--step-time {plain(said, 60)}"
        raise UsageError("is neither a time nor a log file", where=where, hint="write it like 2.31s, or give a log")
    return read_log(path, tokens)


def read_log(path: Path, tokens: float | None = None) -> MeasuredStep:
    """The steady steps of a training log: those behind the warm-up, of which the median is taken.

    The warm-up ends with the last step of the first half that takes a tenth longer than the median of the second half
    and has none but such before it.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it has no steps, or too few.
    """
    log = StepLog(tokens)
    for line in read_text(path, _LARGEST_LOG).splitlines():
        log.feed(line)
    times = log.times
    if not times and log.shows_rates:
        hint = "say its batch, sequence and hardware, or the time itself"
        raise TokensUnknownError(
            "logs tokens a second, and the tokens of its step are not known", where=str(path), hint=hint
        )
    if not times:
        raise ConfigError("has no completed training step", where=str(path), hint=_WRITTEN)
    return steady_step(times, plain(path.name, 80), log.tokens_per_device, where=str(path))


def steady_step(
    times: list[float], source: str, tokens_per_device: float | None = None, *, where: str | None = None
) -> MeasuredStep:
    """The median of the steps behind the warm-up, as :func:`read_log` takes it. Times in seconds.

    Raises:
        ConfigError: there are too few.
    """
    usual = median(times[len(times) // 2 :])
    warm = next((n for n, time in enumerate(times) if time <= _WARM * usual), 0)
    steady = times[warm:]
    if len(steady) < _FEWEST:
        reason = f"has {len(steady)} steady steps behind the warm-up; {_FEWEST} are needed"
        raise ConfigError(reason, where=where or source)
    return MeasuredStep(
        seconds=median(steady),
        least=min(steady),
        most=max(steady),
        deviation=pstdev(steady),
        steps=len(steady),
        left_out=warm,
        tokens_per_device=tokens_per_device,
        source=source,
    )
