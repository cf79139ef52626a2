"""The steady steps of a run: without warm-up, evaluation, checkpoints and stalls."""

from collections.abc import Sequence
from statistics import median, pstdev

from asap.core.errors import ConfigError
from asap.experiments.observed import MeasuredStep, SlowStep, StepTimes

WARM = 1.1
"""A step of the warm-up takes this many times the median of the second half."""
SLOW = 1.5
"""A step of evaluation, checkpoint or a stall takes this many times the median."""
_MOST_SLOW = 5
FEWEST = 3


def step_times(times: Sequence[tuple[int | None, float]]) -> StepTimes:
    """Median and spread of the steady steps: those behind the warm-up that no evaluation or checkpoint made slow.

    The warm-up ends before the first step that takes at most a tenth longer than the median of the second half.

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
        median=median(steady),
        least=min(steady),
        most=max(steady),
        deviation=pstdev(steady),
        steps=len(steady),
        left_out=len(times) - len(behind),
        slow=tuple(SlowStep(step=step, seconds=seconds) for step, seconds in slow[:_MOST_SLOW]),
        slow_steps=len(slow),
    )


def steady_count(times: Sequence[tuple[int | None, float]]) -> int:
    """Steps behind the warm-up."""
    if len(times) == 1:
        return 1
    usual = median(seconds for _, seconds in times[len(times) // 2 :])
    warm = next((n for n, (_, seconds) in enumerate(times) if seconds <= WARM * usual), 0)
    first = times[warm:]
    # asynchronous dispatch: the first step behind compilation returns at once
    skip = next((n for n, (_, seconds) in enumerate(first) if seconds > usual / 2), 0)
    return len(first) - skip


def steady_step(
    times: Sequence[float], source: str, tokens_per_device: float | None = None, *, where: str | None = None
) -> MeasuredStep:
    """The median of the steady steps. Times in seconds.

    Raises:
        ConfigError: there are fewer than three.
    """
    found = step_times([(None, seconds) for seconds in times])
    if found.steps < FEWEST or found.median is None:
        reason = f"has {found.steps} steady steps behind the warm-up; {FEWEST} are needed"
        raise ConfigError(reason, where=where or source)
    return MeasuredStep(
        seconds=found.median, least=found.least, most=found.most, deviation=found.deviation, steps=found.steps,
        left_out=found.left_out, tokens_per_device=tokens_per_device, source=source,
    )  # fmt: skip
