"""What measuring the first three candidates costs, and how far each choice is expected to stay behind the best plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.units import format_percent, format_seconds, significant
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.expected_regret import ExpectedRegret, expected_regret, seconds
from asap.proposals.test_worth import STEPS, WARM_UP_STEPS

_HOUR = 3600.0


@dataclass(frozen=True)
class FirstThree:
    """Short runs of the most promising configurations: seconds and chip-hours of all of them together."""

    seconds: float
    chip_hours: float
    regret: ExpectedRegret

    @property
    def statement(self) -> str:
        """The offer in a sentence."""
        cost = f"{format_seconds(self.seconds)}, {significant(self.chip_hours, 2)} chip-hours beside start-up"
        first, after, runs = format_percent(self.regret.of_first), format_percent(self.regret.after), self.regret.runs
        return (
            f"Measure the first {runs} (--evaluate run --budget {runs}): {WARM_UP_STEPS + STEPS} steps each,"
            f" {cost}. The best alone is expected to lie {first} behind the fastest of all, the fastest of"
            f" {runs} that were measured {after}."
        )


def first_three(candidates: Sequence[Prediction], chips: int) -> FirstThree | None:
    """The offer; ``None`` where there are not two candidates with a step time.

    Args:
        candidates: in their order.
        chips: of the run.
    """
    timed = [each for each in candidates if each.step_time is not None]
    regret = expected_regret(timed[:3], timed[3:])
    if regret is None:
        return None
    spent = sum(seconds(each) for each in timed[:3]) * (WARM_UP_STEPS + STEPS)
    return FirstThree(spent, chips * spent / _HOUR, regret)
