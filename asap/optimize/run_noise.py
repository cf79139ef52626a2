"""How much runs of one configuration differ from each other: other nodes, other neighbours, another temperature.

The error of a mean over steps of one run says nothing of it. It is learnt from configurations that ran more than once;
before, it is taken to be the largest of undisturbed runs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asap.optimize.outcome import Outcome
from asap.proposals.selection.choice import MEASURABLE

UNSEEN = 0.03
"""Before anything ran twice: the largest variation of undisturbed steps in public traces (0.3 to 3 %)."""
PRIOR_RUNS = 1.0
"""Repeated runs that it counts for: the least that gives an estimate a variance."""


@dataclass(frozen=True)
class RunNoise:
    """Standard deviation of ``ln(step time)`` between runs of one configuration, and what it rests on.

    The variance has a scaled inverse chi-squared distribution (Gelman et al. 2013, section 2.6), so what is measured
    has Student's t with so many ``degrees`` of freedom.
    """

    deviation: float = 0.0
    degrees: float = math.inf
    seen: float = 0.0
    """The deviation that repeated runs show by themselves."""

    @classmethod
    def of(cls, timed: Iterable[Sequence[Outcome]]) -> "RunNoise":
        """From the outcomes of each configuration; none where nothing varies, as what a compiler says."""
        squares, degrees, varies = 0.0, 0, False
        for outcomes in timed:
            logs = [math.log(each.step_time_s) for each in outcomes if each.step_time_s and varying(each)]
            varies |= bool(logs)
            if len(logs) > 1:
                mean = sum(logs) / len(logs)
                squares += sum((log - mean) ** 2 for log in logs)
                degrees += len(logs) - 1
        if not varies:
            return cls()
        variance = (PRIOR_RUNS * UNSEEN**2 + squares) / (PRIOR_RUNS + degrees)
        return cls(math.sqrt(variance), max(degrees, PRIOR_RUNS), math.sqrt(squares / max(degrees, 1)))

    @property
    def matters(self) -> bool:
        """Whether one run of each does not tell two configurations apart as far as short runs can."""
        return self.seen > MEASURABLE


def varying(outcome: Outcome) -> bool:
    """Whether it was measured, and would be another the next time."""
    return bool(outcome.standard_error_s)


def half_width(error: float, degrees: float) -> float:
    """Of the 90 % interval of what has this standard error."""
    from scipy.stats import norm, t

    return error * float(t.ppf(0.95, degrees) if math.isfinite(degrees) else norm.ppf(0.95))
