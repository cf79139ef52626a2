"""Devices that share the cores of a host: a step takes what all their operations take of these cores.

Nothing hides behind anything else there, so of a new axis all of its time counts, not what is exposed of it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asap.prediction.from_trace.factors import COMPUTE, MEMORY, PRODUCTS, Factors, class_labels, factor_of
from asap.traces.analysis.critical_path import core_times
from asap.traces.trace import RankTrace


@dataclass(frozen=True)
class CoreTime:
    """Nanoseconds of each class of operations, over the whole trace."""

    by_class: Mapping[str, float]

    @classmethod
    def of(cls, ranks: Sequence[RankTrace]) -> "CoreTime":
        """The time of all ranks."""
        totals: dict[str, float] = defaultdict(float)
        for rank, times in zip(ranks, core_times(ranks), strict=True):
            labels = class_labels(rank)
            for name in np.unique(labels).tolist():
                totals[name] += float(times[labels == name].sum())
        return cls(totals)

    def ratios(self, found: Factors) -> tuple[float, float]:
        """What the traced classes, and what new axes take in the target; both over the step of the traced run.

        More devices share the same cores. The traced collectives tell how far the step model is off for axes that they
        do not serve.
        """
        whole = sum(self.by_class.values())
        kept = sum(time * factor_of(found, name, self.by_class) for name, time in self.by_class.items())
        moving = sum(time for name, time in self.by_class.items() if name not in (PRODUCTS, MEMORY, COMPUTE))
        known = sum(found.before.axes.values())
        added = found.on_new_axes(found.after.axes) * moving / known if known else 0.0
        return found.devices * kept / whole, found.devices * added / whole
