"""What measuring the first three candidates costs, and how far each choice lay behind the fastest of published runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.units import format_percent, format_seconds, significant
from asap.prediction.prediction import Prediction
from asap.proposals.test_worth import STEPS, WARM_UP_STEPS

_HOUR = 3600.0
_MEASURED = 3
REGRET_OF_FIRST, REGRET_AFTER_THREE, GROUPS = 0.047, 0.009, 296
"""Mean share by which a choice took longer than the fastest run of its group, over groups of published runs whose
source was left out of the fit (docs/accuracy.md, "Published runs")."""


@dataclass(frozen=True)
class FirstThree:
    """Short runs of the most promising configurations: seconds and chip-hours of all of them together."""

    runs: int
    seconds: float
    chip_hours: float

    @property
    def statement(self) -> str:
        """The offer in two sentences."""
        cost = f"{format_seconds(self.seconds)}, {significant(self.chip_hours, 2)} chip-hours beside start-up"
        first, after = format_percent(REGRET_OF_FIRST), format_percent(REGRET_AFTER_THREE)
        return (
            f"Measure the first {self.runs} (--evaluate run --budget {self.runs}): {WARM_UP_STEPS + STEPS} steps each,"
            f" {cost}. In {GROUPS} groups of published runs the model's first choice took {first} longer than the"
            f" fastest, the best of three measured {after}."
        )


def first_three(candidates: Sequence[Prediction], chips: int) -> FirstThree | None:
    """The offer; ``None`` where there are not two candidates with a step time.

    Args:
        candidates: in their order.
        chips: of the run.
    """
    steps = [each.step_time.value for each in candidates if each.step_time is not None][:_MEASURED]
    if len(steps) < 2:
        return None
    spent = sum(steps) * (WARM_UP_STEPS + STEPS)
    return FirstThree(len(steps), spent, chips * spent / _HOUR)
