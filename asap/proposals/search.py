"""The search over every configuration of a run, and the few places of the grid that are worth a closer look."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.levers.lever import Run
from asap.levers.table import LEVERS
from asap.models import Architecture
from asap.plans import AXES, Plan
from asap.plans.enumeration import Table, factorisations, valid
from asap.plans.launchers import stack_of
from asap.plans.validity import Constraints
from asap.prediction.configuration_grid import ConfigurationGrid, first_rows
from asap.prediction.evaluate_grid import GridEvaluation, evaluate_grid
from asap.prediction.predict_study import usual_axes
from asap.prediction.step_model.groups import allocator_class
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.doubt import after_doubt_of_each
from asap.proposals.ranking import LEAST_ODDS
from asap.proposals.strategy import ALONE
from asap.study.study import Study

A_CHANGE = 0.005
"""Gain in ``ln(step time)`` that each changed lever, and each doubling of the mesh, has to bring to be worth changing:
a tenth of what one changed knob costs an engineer is not known better than that."""
LEADING = 20_000
"""Places that are looked at more closely."""
ROUNDING = 1e-9
"""Difference in ``ln(step time)`` that is none."""
_MESH = 0

Places = NDArray[np.int64]
PrecedentGains = Callable[[Table], NDArray[np.float64]]


@dataclass(frozen=True)
class Search:
    """An evaluated grid and what precedents add to the gain of each mesh, in ``ln(step time)``."""

    evaluation: GridEvaluation
    precedents: NDArray[np.float64]
    fits_now: bool

    @property
    def possible(self) -> Places:
        """Places that are valid and fit, of shape (places, axes), best first by gain after doubt and simplicity."""
        return self._best_first(self._runs)

    @cached_property
    def leading(self) -> Places:
        """The best of the possible places whose changes all bring something."""
        return self._best_first(self._runs & ~self._idle, LEADING)

    @property
    def considered(self) -> int:
        """Configurations that can run, whether they fit or not, beside the present one."""
        return int(np.count_nonzero(self.evaluation.valid)) - 1

    def worth(self, places: Places) -> NDArray[np.float64]:
        """What decides between places, as in :mod:`asap.proposals.ranking`, less what each change has to bring."""
        index = tuple(places.T)
        gain, odds = self.evaluation.gain[index] + self.precedents[places[:, _MESH]], self.evaluation.fit_odds[index]
        doubt = self.evaluation.half_width(index)
        worth = (
            after_doubt_of_each(gain, doubt, odds)
            if self.fits_now
            else gain - doubt + np.log(np.maximum(odds, LEAST_ODDS))
        )
        return worth - self.effort(places)

    def effort(self, places: Places) -> NDArray[np.float64]:
        """What the changes of each place have to bring, in ``ln(step time)``."""
        return A_CHANGE * (np.count_nonzero(places, axis=1) + self._moved[places[:, _MESH]])

    def kinds(self, places: Places) -> list[str]:
        """What most of each place's gain comes from: a lever, or the direction in which the mesh moves; and whether it
        is all that changes.

        Where the run does not fit as it is, what makes it fit: every lever that is changed.
        """
        if not self.fits_now:
            return ["+".join(self._changed(place)) for place in places]
        brought = np.stack([self._brought(places, axis) for axis in range(places.shape[1])], axis=1)
        main = np.argmax(np.where(places == 0, -np.inf, brought), axis=1)
        names = np.array([self._lever(axis) for axis in range(places.shape[1])])[main]
        names = np.where(main == _MESH, self._directions[places[:, _MESH]], names)
        return np.where(np.count_nonzero(places, axis=1) == 1, np.char.add(names, ALONE), names).tolist()

    def best_of_each_mesh(self) -> Places:
        """The best leading place of each mesh, best first."""
        _, rows = np.unique(self.leading[:, _MESH], return_index=True)
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
        places[:, _MESH] = rows
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

    def _best_first(self, where: NDArray[np.bool_], most: int | None = None) -> Places:
        """Places of the grid, best first, and so many of them."""
        places = np.stack(np.unravel_index(np.flatnonzero(where.T), where.T.shape)[::-1], axis=1)
        worth = self.worth(places)
        if most is not None and most < len(places):
            best = np.argpartition(-worth, most)[:most]
            places, worth = places[np.sort(best)], worth[np.sort(best)]
        return places[np.argsort(-worth, kind="stable")]

    def _brought(self, places: Places, axis: int) -> NDArray[np.float64]:
        """Gain that a place loses if one change is taken back; none where it only makes room for another one."""
        back = places.copy()
        back[:, axis] = 0
        index, without = tuple(places.T), tuple(back.T)
        runs = self.evaluation.fits[without] & self.evaluation.valid[without]
        return np.where(runs, self.evaluation.gain[index] - self.evaluation.gain[without], 0.0)

    def _changed(self, place: NDArray[np.int64]) -> list[str]:
        return [self._lever(axis) for axis in range(len(place)) if place[axis]]

    def _lever(self, axis: int) -> str:
        return "mesh" if axis == _MESH else self.evaluation.grid.levers[axis - 1][0].name

    @cached_property
    def _directions(self) -> NDArray[np.str_]:
        """The axis that each mesh moves most, raised or lowered; data and replica only where nothing else moves."""
        table = self.evaluation.grid.meshes
        steps = np.log2(table / table[0]) * np.where(np.isin(AXES, ("replica", "data")), 0.01, 1.0)
        leading = np.argmax(np.where(steps < 0, -1.5 * steps, steps), axis=1)
        moved = zip(leading, steps[np.arange(len(table)), leading], strict=True)
        return np.array([f"{'more' if step > 0 else 'less'} {AXES[axis]}" for axis, step in moved])

    @cached_property
    def _moved(self) -> NDArray[np.float64]:
        """Doublings that each mesh moves, and axes that it takes into use."""
        table = self.evaluation.grid.meshes
        new = np.count_nonzero((table > 1) & (table[0] == 1), axis=1)
        return np.maximum(np.log2(table / table[0]), 0).sum(axis=1) + new


def search(study: Study, precedents: PrecedentGains) -> Search | None:
    """Evaluate every configuration of a run; ``None`` where its plan, rematerialisation or architecture is not known.

    Args:
        study: the run.
        precedents: gain that precedents add to meshes of shape (meshes, 6), in ``ln(step time)``.
    """
    plan, model, hardware, workload = study.plan, study.experiment.model, study.slice, study.experiment.workload
    if plan is None or plan.remat is None or hardware is None or not workload.tokens or workload.global_batch is None:
        return None
    if model is None or model.missing() or study.constraints.devices_per_slice is None:
        return None
    grid = _grid(study, plan, model, workload.global_batch)
    measured = study.profile.kpis.step_time_s if study.profile else None
    evaluation = evaluate_grid(grid, model, workload, hardware, study.constraints, load_calibration().full, measured)
    return Search(evaluation, precedents(grid.meshes), bool(evaluation.fits[evaluation.present]))


def best_plans(study: Study, count: int) -> list[Plan]:
    """The fastest configuration that fits of each mesh, fastest mesh first; none where nothing can be searched."""
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    if found is None or not len(found.possible):
        return []
    places = found.possible
    places = places[np.argsort(-found.evaluation.gain[tuple(places.T)], kind="stable")]
    _, rows = np.unique(places[:, _MESH], return_index=True)
    return [found.plan(place) for place in places[np.sort(rows)][:count]]


def _unrepeated(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A broadcast array with one entry where it repeats itself."""
    return array[tuple(slice(1) if stride == 0 else slice(None) for stride in array.strides)]


def run_of(study: Study) -> Run:
    """What the values of levers depend on."""
    workload, hardware = study.experiment.workload, study.slice
    kind = hardware.chip.kind if hardware else "tpu"
    xla = allocator_class(workload.framework, kind) in ("tpu", "xla")
    return Run(
        plan=study.plan or Plan(), workload=workload, stack=stack_of(workload.framework), xla=xla,
        chip=hardware.chip.name if hardware else "", settings=study.experiment.hyperparameters,
    )  # fmt: skip


def _grid(study: Study, plan: Plan, model: Architecture, batch: int) -> ConfigurationGrid:
    tried = ((lever, lever.tried(run_of(study), study.wishes.allowed)) for lever in LEVERS)
    return ConfigurationGrid(
        plan, _table(study, plan, study.constraints), tuple(t for t in tried if len(t[1]) > 1), batch
    )


def _table(study: Study, plan: Plan, constraints: Constraints) -> NDArray[np.int64]:
    """Meshes that some number of microbatches may make valid, the present one first."""
    devices = constraints.devices_per_slice
    assert devices is not None
    table = factorisations(devices, usual_axes(study))
    whole = plan.model_copy(update={"microbatches": 1, "pipeline_repeats": 1})
    return first_rows(table[valid(table, constraints, whole)], plan.ici.degrees)
