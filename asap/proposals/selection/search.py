"""The search over every configuration of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.hardware.instances import chips_per_node
from asap.levers.lever import Run
from asap.levers.table import LEVERS
from asap.models import Architecture
from asap.plans import AXES, Plan
from asap.plans.enumeration import Table, factorisations, valid
from asap.plans.validity import Constraints
from asap.prediction.configuration_grid import ConfigurationGrid, first_rows
from asap.prediction.evaluation import GridEvaluation, evaluate_grid
from asap.prediction.memory_outcomes import memory_belief
from asap.prediction.predict_study import anchoring_step, usual_axes
from asap.prediction.step_model.groups import allocator_class
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.selection.candidate import LEAST_ODDS, LIKELY, add_precedent, after_doubt_of_each
from asap.proposals.selection.choice import MEASURABLE
from asap.proposals.selection.strategy import MESH, Places, kinds
from asap.stacks.launchers import stack_of
from asap.study.start import is_start
from asap.study.study import Study

CHANGE_COST = MEASURABLE / 2
"""Gain in ``ln(step time)`` that each changed lever, and each doubling of the mesh, has to bring to be worth changing:
half of what two short runs can tell apart."""
LEADING = 20_000
"""Places that are looked at more closely. Judgement: the time of a search."""
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
            after_doubt_of_each(add_precedent(gain, added, odds), doubt, odds)
            if self.fits_now
            else gain
            + np.where(odds < LIKELY, np.minimum(added, 0), added)
            - doubt
            + np.log(np.maximum(odds, LEAST_ODDS))
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
        """Doublings that each mesh moves beyond its being another, and axes that it takes into use; how much of the
        batch's devices shard the state is the one setting that it is, such as a stage of ZeRO."""
        table = self.evaluation.grid.meshes
        batch = [AXES.index(axis) for axis in ("replica", "data")]
        table = np.column_stack([table[:, batch].prod(axis=1), np.delete(table, batch, axis=1)])
        grown = np.maximum(np.log2(table / table[0]), 0)
        new = np.count_nonzero((table > 1) & (table[0] == 1), axis=1)
        return grown.sum(axis=1) + new


def _saves_hbm_at_best(plan: Plan, incumbent: Plan) -> bool:
    """Whether something waits in host memory, or the loss comes in more parts: neither makes a step faster."""
    return bool(plan.offload) or plan.moves_activations or (plan.loss_chunks or 1) > (incumbent.loss_chunks or 1)


def _unrepeated(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A broadcast array with one entry where it repeats itself."""
    return array[tuple(slice(1) if stride == 0 else slice(None) for stride in array.strides)]


PrecedentGains = Callable[[Table], NDArray[np.float64]]


def search(study: Study, precedents: PrecedentGains) -> SearchResult | None:
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
    fit, measured = load_calibration().full, anchoring_step(study)
    evaluation = evaluate_grid(grid, model, workload, hardware, study.constraints, fit, measured, memory_belief(study))
    fits_now, nothing_runs = bool(evaluation.fits[evaluation.present]), is_start(study.experiment)
    return SearchResult(evaluation, precedents(grid.meshes), fits_now, nothing_runs)


def best_plans(study: Study, count: int) -> list[Plan]:
    """The fastest configuration that fits of each mesh, fastest mesh first; none where nothing can be searched."""
    found = search(study, lambda meshes: np.zeros(len(meshes)))
    if found is None or not len(found.possible):
        return []
    places = found.possible
    places = places[np.argsort(-found.evaluation.gain[tuple(places.T)], kind="stable")]
    _, rows = np.unique(places[:, MESH], return_index=True)
    return [found.plan(place) for place in places[np.sort(rows)][:count]]


def run_of(study: Study) -> Run:
    """What the values of levers depend on."""
    workload, hardware = study.experiment.workload, study.slice
    kind = hardware.chip.kind if hardware else "tpu"
    xla = allocator_class(workload.framework, kind) in ("tpu", "xla")
    return Run(
        plan=study.plan or Plan(), workload=workload, stack=stack_of(workload.framework, kind), xla=xla,
        model=study.experiment.model, chip=hardware.chip.name if hardware else "",
        node=chips_per_node(hardware.chip) if hardware else None,
        settings=study.experiment.hyperparameters,
    )  # fmt: skip


def _grid(study: Study, plan: Plan, model: Architecture, batch: int) -> ConfigurationGrid:
    tried = ((lever, lever.tried(run_of(study), study.preferences.allowed)) for lever in LEVERS)
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
