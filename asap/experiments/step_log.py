"""Step times in a training log, line by line: of MaxText, Megatron-LM, NeMo, torchtitan and nanotron."""

import math
import re
from statistics import median

_NUMBER = r"([\d.]+(?:[eE][-+]?\d+|K)?)"
_TIMES = (
    (re.compile(rf"completed step: *\d+, *seconds: *{_NUMBER}"), 1.0),  # MaxText, metric_logger.py
    (re.compile(rf"elapsed time per iteration \(ms\): *{_NUMBER}"), 1e-3),  # Megatron-LM, training.py
    (re.compile(rf"train_step_timing in s[:=] *{_NUMBER}"), 1.0),  # NeMo, TimingCallback
    (re.compile(rf"elapsed_time_per_iteration_ms: *{_NUMBER}"), 1e-3),  # nanotron, trainer.py; 1.23K
)
_RATE = re.compile(r"\bstep: *\d+ .*?\btps: *([\d,]+)")  # torchtitan, components/metrics.py
_TOKENS = re.compile(rf"seconds: *{_NUMBER},.*?Tokens/s/device: *{_NUMBER}")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_LINE = 2000


class StepLog:
    """Collects step times from lines; those of the first format that shows any.

    Args:
        tokens: of a device in a step: torchtitan logs tokens a second and device, not time.
    """

    def __init__(self, tokens: float | None = None):
        self._tokens = tokens
        self._found: list[list[float]] = [[] for _ in (*_TIMES, _RATE)]
        self._counted: list[float] = []
        self.shows_rates = False
        """Whether a line has tokens a second in the stead of a time."""

    def feed(self, line: str) -> bool:
        """Read a line; whether it completes a step."""
        text = without_colour(line[:LONGEST_LINE])
        if counted := _TOKENS.search(text):
            self._counted.append(_number(counted[1]) * _number(counted[2]))
        for times, (pattern, unit) in zip(self._found, _TIMES, strict=False):
            if found := pattern.search(text):
                return _keep(times, _number(found[1]) * unit)
        if found := _RATE.search(text):
            self.shows_rates, rate = True, _number(found[1].replace(",", ""))
            return _keep(self._found[-1], self._tokens / rate if self._tokens and rate else 0.0)
        return False

    @property
    def times(self) -> list[float]:
        """Seconds of each step so far."""
        return next((times for times in self._found if times), [])

    @property
    def tokens_per_device(self) -> float | None:
        """Tokens of a device in a step, as the log counts them: rate times seconds, the median."""
        return median(self._counted) or None if self._counted else None


def without_colour(line: str) -> str:
    """The line without a terminal's colours: torchtitan writes them into files too."""
    return _COLOUR.sub("", line)


def _keep(times: list[float], seconds: float) -> bool:
    if not 0 < seconds < math.inf:
        return False
    times.append(seconds)
    return True


def _number(text: str) -> float:
    try:
        return float(text.removesuffix("K")) * (1000 if text.endswith("K") else 1)
    except ValueError:
        return 0.0
