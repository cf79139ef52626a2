"""Every configuration of a run, evaluated, and the few places of the grid that are worth a closer look."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.prediction.evaluate_grid import GridEvaluation
from asap.proposals.selection.candidate import LEAST_ODDS, LIKELY
from asap.proposals.selection.choice import MEASURABLE
from asap.proposals.selection.doubt import add_precedent, after_doubt_of_each
from asap.proposals.selection.strategy import MESH, Places, kinds

CHANGE_COST = MEASURABLE / 2
"""Gain in ``ln(step time)`` that each changed lever, and each doubling of the mesh, has to bring to be worth changing:
half of what two short runs can tell apart."""
LEADING = 20_000
"""Places that are looked at more closely."""
ROUNDING = 1e-9
"""Difference in ``ln(step time)`` that is none."""


@dataclass(frozen=True)
class SearchResult:
    """An evaluated grid, what precedents add to the gain of each mesh, in ``ln(step time)``, whether what runs now
    fits, and whether it is only a start that was assumed."""

    evaluation: GridEvaluation
    precedents: NDArray[np.float64]
    fits_now: bool
    nothing_runs: bool = False

    @property
    def possible(self) -> Places:
        """Places that are valid and fit, of shape (places, axes), best first by gain after doubt and simplicity."""
        return self._best_first(self._runs)

    @cached_property
    def leading(self) -> Places:
        """The best of the possible places whose changes all bring something."""
        certain = self._runs & (self.evaluation.fit_odds >= LIKELY)
        return self._best_first(self._runs & ~self._idle & ~self._saved_in_vain(certain, CHANGE_COST), LEADING)

    @property
    def considered(self) -> int:
        """Configurations that can run, whether they fit or not, beside the present one."""
        return int(np.count_nonzero(self.evaluation.valid)) - 1

    def worth(self, places: Places) -> NDArray[np.float64]:
        """The score of :mod:`asap.proposals.selection.candidate`, less what each change has to bring."""
        index = tuple(places.T)
        gain, odds = self.evaluation.gain[index], self.evaluation.fit_odds[index]
        added = self.precedents[places[:, MESH]]
        doubt = np.zeros_like(gain) if self.nothing_runs else self.evaluation.half_width(index)
        worth = (
            after_doubt_of_each(add_precedent(gain, added), doubt, odds)
            if self.fits_now
            else gain + added - doubt + np.log(np.maximum(odds, LEAST_ODDS))
        )
        return worth - self.effort(places)

    def effort(self, places: Places) -> NDArray[np.float64]:
        """What the changes of each place have to bring, in ``ln(step time)``."""
        return CHANGE_COST * (np.count_nonzero(places, axis=1) + self._moved[places[:, MESH]])

    def kinds(self, places: Places) -> list[str]:
        """What most of each place's gain comes from."""
        return kinds(self.evaluation, places, self.fits_now)

    def best_of_each_mesh(self) -> Places:
        """The best leading place of each mesh, best first."""
        _, rows = np.unique(self.leading[:, MESH], return_index=True)
        return self.leading[np.sort(rows)]

    def best_of_each_kind(self) -> Places:
        """The best leading place of each kind, best first."""
        _, rows = np.unique(np.array(self.kinds(self.leading)), return_index=True)
        return self.leading[np.sort(rows)]

    def present_settings(self) -> Places:
        """Every valid mesh with the levers as they are, fastest first, whether it fits or not."""
        found, now = self.evaluation, self.evaluation.present[1:]
        column = (slice(None), *now)
        rows = np.flatnonzero(found.valid[column])
        rows = rows[np.argsort(-found.gain[column][rows], kind="stable")]
        places = np.zeros((len(rows), len(found.grid.shape)), dtype=np.int64)
        places[:, MESH] = rows
        return places

    def single_changes(self) -> Places:
        """Every value of each lever on the present mesh, all else as it is."""
        shape = self.evaluation.grid.shape
        places = [
            [value if other == axis else 0 for other in range(len(shape))]
            for axis in range(1, len(shape))
            for value in range(1, shape[axis])
        ]
        found = np.array(places, dtype=np.int64).reshape(-1, len(shape))
        return found[self.evaluation.valid[tuple(found.T)]]

    def plan(self, place: NDArray[np.int64]) -> Plan:
        """The plan at a place."""
        return self.evaluation.grid.plan(tuple(map(int, place)))

    @cached_property
    def _runs(self) -> NDArray[np.bool_]:
        return self.evaluation.valid & self.evaluation.fits

    @cached_property
    def _idle(self) -> NDArray[np.bool_]:
        """Where some change brings nothing: set back to what runs now, the place fits and is as fast."""
        gain, runs = _unrepeated(self.evaluation.gain).T, self._runs.T
        idle = np.zeros(runs.shape, dtype=bool)
        for axis in range(idle.ndim):
            changed = (*(slice(None),) * axis, slice(1, None))
            present = (*(slice(None),) * axis, slice(1))
            gains = gain[changed] if gain.shape[axis] > 1 else gain
            idle[changed] |= (gains <= gain[present] + ROUNDING) & runs[present]
        return idle.T

    @cached_property
    def saves_hbm_in_vain(self) -> NDArray[np.bool_]:
        """Where a lever saves HBM at best, and another of its values, which does not, fits and is as fast."""
        return self._saved_in_vain(self._runs, ROUNDING)

    def _saved_in_vain(self, enough: NDArray[np.bool_], slower: float) -> NDArray[np.bool_]:
        """Where a lever saves HBM at best, and another of its values, which does not, has room enough and is hardly
        slower, in ``ln(step time)``."""
        grid = self.evaluation.grid
        gain = np.broadcast_to(self.evaluation.gain, enough.shape)
        vain = np.zeros(enough.shape, dtype=bool)
        for axis, (_, values) in enumerate(grid.levers, 1):
            saves = np.array([_saves_hbm_at_best(value.change(grid.incumbent), grid.incumbent) for value in values])
            if saves.all() or not saves.any():
                continue
            others = np.where(enough, gain, -np.inf).compress(~saves, axis).max(axis, keepdims=True)
            saves = saves.reshape([-1 if other == axis else 1 for other in range(enough.ndim)])
            vain |= saves & (gain <= others + slower)
        return vain

    def _best_first(self, where: NDArray[np.bool_], most: int | None = None) -> Places:
        """Places of the grid, best first, and so many of them."""
        places = np.stack(np.unravel_index(np.flatnonzero(where.T), where.T.shape)[::-1], axis=1)
        worth = self.worth(places)
        if most is not None and most < len(places):
            best = np.argpartition(-worth, most)[:most]
            places, worth = places[np.sort(best)], worth[np.sort(best)]
        return places[np.argsort(-worth, kind="stable")]

    @cached_property
    def _moved(self) -> NDArray[np.float64]:
        """Doublings that each mesh moves, and axes that it takes into use."""
        table = self.evaluation.grid.meshes
        new = np.count_nonzero((table > 1) & (table[0] == 1), axis=1)
        return np.maximum(np.log2(table / table[0]), 0).sum(axis=1) + new


def _saves_hbm_at_best(plan: Plan, incumbent: Plan) -> bool:
    """Whether something waits in host memory, or the loss comes in more parts: neither makes a step faster."""
    return bool(plan.offload) or plan.moves_activations or (plan.loss_chunks or 1) > (incumbent.loss_chunks or 1)


def _unrepeated(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A broadcast array with one entry where it repeats itself."""
    return array[tuple(slice(1) if stride == 0 else slice(None) for stride in array.strides)]
