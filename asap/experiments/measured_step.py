"""A measured step time without a profile: as somebody says it, or as a training log shows it."""

import re
from pathlib import Path

from asap.core.errors import ConfigError, UsageError
from asap.core.files import is_file, user_path
from asap.core.text import plain
from asap.experiments.logs.read import read_log
from asap.experiments.logs.reading import LogReading
from asap.experiments.observed import MeasuredStep, Observed

_SAID = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|sec|seconds|ms|min)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "min": 60.0}
_WRITTEN = (
    "MaxText writes 'completed step: 5, seconds: 2.31', Megatron-LM 'elapsed time per iteration (ms): 2310',"
    " torchtitan 'step: 5 … tps: 1,234'"
)
_FEWEST = 3


class TokensUnknownError(ConfigError):
    """A log counts tokens a second, and how many a step has is not known."""


def read_measured_step(said: str, tokens: float | None = None) -> tuple[MeasuredStep | None, Observed | None]:
    """``2.31s``, ``2310 ms``, or the path of a training log: the step, and what else its log says was seen. A log that
    ends out of memory before its first step has no step.

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
        return MeasuredStep(seconds=seconds, source="the user (--step-time)"), None
    path = user_path(said)
    if not is_file(path):
        where = f"--step-time {plain(said, 60)}"
        raise UsageError("is neither a time nor a log file", where=where, hint="write it like 2.31s, or give a log")
    reading = read_log(path)
    observed = Observed(file=plain(path.name, 80), measured=reading.measured, ending=reading.ending)
    died = reading.ending.kind == "out_of_memory" and reading.ending.before_first_step
    return None if died else _step_of(reading, path, tokens), observed


def _step_of(reading: LogReading, path: Path, tokens: float | None) -> MeasuredStep:
    """The steady steps of a log's last run: those behind the warm-up, of which the median is taken."""
    found = reading.measured
    step, rate, source = found.step, found.tokens_per_second_per_device, plain(path.name, 80)
    if step.median is None and rate is not None:
        if tokens is None:
            hint = "say its batch, sequence and hardware, or the time itself"
            raise TokensUnknownError(
                "logs tokens a second, and the tokens of its step are not known", where=str(path), hint=hint
            )
        return MeasuredStep(seconds=tokens / rate, tokens_per_device=tokens, source=f"{source}: tokens a second")
    if step.median is None:
        raise ConfigError("has no completed training step", where=str(path), hint=_WRITTEN)
    if step.steps < _FEWEST:
        reason = f"has {step.steps} steady steps behind the warm-up; {_FEWEST} are needed"
        raise ConfigError(reason, where=str(path))
    return MeasuredStep(
        seconds=step.median, least=step.least, most=step.most, deviation=step.deviation, steps=step.steps,
        left_out=step.left_out, tokens_per_device=rate * step.median if rate else None, source=source,
    )  # fmt: skip
