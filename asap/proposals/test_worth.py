"""What a short test of a plan costs, and what it is expected to save over the steps that are still to be trained.

The plan is kept only if the test shows it to be faster, so a loss costs the test and nothing more: the expected saving
is that of the better of both. For a log-normal step time ratio with mean gain g and deviation s that is
``P(faster) - exp(s²/2 - g) · Phi((g - s²) / s)``, the partial expectation of the log-normal distribution
(Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions 1, chapter 14).
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import HOUR, Quantity, significant
from asap.evidence.step_belief import Z_90
from asap.proposals.selection.candidate import log_interval
from asap.study.study import Study

STEPS = 20
"""Steps of a test: with a variation of 3 % their mean is known to 1 %."""
WARM_UP_STEPS = 5
"""Steps before them, which take longer and do not count. Judgement: what a test costs."""


class TestWorth(BaseModel):
    """A test of one plan against what it may save. Chip-hours; modelled."""

    __test__ = False
    model_config = ConfigDict(frozen=True)

    steps: int = Field(description="of the test")
    chip_hours: float = Field(description="of the test's steps; what it takes to start and compile is not in it")
    steps_to_go: int
    expected_saving: float = Field(description="chip-hours over the steps to go, the plan kept only if it is faster")
    money: float | None = Field(default=None, description="what the expected saving is worth, less the test")
    currency: str | None = None
    worth_it: bool
    statement: str


def worth_of_test(
    study: Study, now: Quantity | None, relative: Quantity | None, step: Quantity | None
) -> TestWorth | None:
    """What testing a plan is worth; ``None`` where the steps to go or a step time are not known.

    Args:
        study: the run, with what the user prefers.
        now: step time of the plan that runs.
        relative: the plan's step time over it.
        step: the plan's step time.
    """
    to_go, hardware = study.preferences.steps_to_go, study.slice
    if to_go is None or now is None or relative is None or step is None or hardware is None:
        return None
    chips = hardware.chips
    test = STEPS * step.value * chips / HOUR
    gain, half_width = map(np.asarray, log_interval(relative))
    saving = float(expected_saving(gain, half_width / Z_90)) * now.value * max(to_go - STEPS, 0) * chips / HOUR
    price = study.preferences.prices.get(hardware.chip.name)
    money = (saving - test) * price if price is not None else None
    priced = f" ({significant(money)} {study.preferences.currency} after the test)" if money is not None else ""
    verdict = "worth it" if saving > test else "not worth it"
    return TestWorth(
        steps=STEPS, chip_hours=test, steps_to_go=to_go, expected_saving=saving, money=money,
        currency=study.preferences.currency if price is not None else None, worth_it=saving > test,
        statement=f"A test of {STEPS} steps ({significant(test)} chip-hours) is {verdict}: kept only if it is faster,"
        f" the plan is expected to save {significant(saving)} chip-hours over {to_go:,} steps{priced}.",
    )  # fmt: skip


def expected_saving(gain: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of a step time that is expected to be saved where ``ln(step time)`` falls by ``gain``, more or less, and
    what is slower is not kept."""
    from scipy.special import ndtr

    safe = np.maximum(deviation, 1e-12)
    kept = np.exp(np.minimum(safe**2 / 2 - gain, 50.0)) * ndtr((gain - safe**2) / safe)
    return np.maximum(ndtr(gain / safe) - kept, 0.0)
