"""Every configuration of a run as one grid: all meshes along the first axis, the values of each lever along another.

Arrays are only as large as what they depend on: time does not know the parts of the loss, so the axis of that lever has
length 1 there, and broadcasting does the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.levers.lever import Lever, Value
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan
from asap.plans.enumeration import Table, mesh_of
from asap.plans.plan import OF_WORKLOAD
from asap.plans.validity import RULES, Constraints, Degrees, recomputed_parts
from asap.prediction.step_model.encoding import hardware_inputs, model_inputs, plan_inputs
from asap.prediction.step_model.encoding.workload import under_meshes, workload_under_plans
from asap.prediction.step_model.inputs import PlanInputs, StepInputs, WorkloadInputs

Array = NDArray[np.float64]
Index = tuple[int, ...]


@dataclass(frozen=True)
class ConfigurationGrid:
    """All meshes times all values of some levers.

    Args:
        incumbent: the plan that runs; configurations differ from it by mesh and levers.
        meshes: ICI degrees of shape (meshes, 6); the incumbent's are the first row.
        levers: each with the values that are tried, the present one first.
        batch: sequences in a step.
    """

    incumbent: Plan
    meshes: Table
    levers: tuple[tuple[Lever, tuple[Value, ...]], ...]
    batch: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of meshes, then of values of each lever."""
        return (len(self.meshes), *(len(values) for _, values in self.levers))

    def plan(self, index: Index) -> Plan:
        """The plan at a place of the grid."""
        plan = self.incumbent.model_copy(update={"ici": mesh_of(self.meshes[index[0]])})
        chosen = [values[place] for (_, values), place in zip(self.levers, index[1:], strict=True)]
        for value in chosen:
            plan = value.change(plan)
        for value in chosen:
            if value.sequences is not None:
                count = max((plan.global_batch or self.batch) // (plan.batch_shards * value.sequences), 1)
                plan = plan.model_copy(update={"microbatches": count})
        if plan.degree("stage") == 1 and self.incumbent.degree("stage") > 1:
            plan = plan.model_copy(update={"pipeline_repeats": 1})
        return plan

    def inputs(self, architecture: Architecture, workload: Workload, hardware: Slice) -> StepInputs:
        """The numbers of the step at every place; each field broadcasts to :attr:`shape`."""
        layout = replace(
            self._mesh_inputs(architecture),
            **self._lever_inputs(architecture, workload),
            microbatches=self.microbatches,
        )
        work = under_meshes(self._workload_inputs(architecture, workload), layout, workload, architecture)
        return StepInputs(model_inputs(architecture), work, hardware_inputs(hardware, workload), layout)

    @cached_property
    def microbatches(self) -> Array:
        """Microbatches at every place; fractions where a microbatch would not be whole."""
        shards, stages = self._total("batch_shards"), self._total("stage")
        shape = np.broadcast_shapes(shards.shape, self.sequences.shape)
        found = np.ones((1,) * len(self.shape))
        for axis, (lever, values) in enumerate(self.levers, 1):
            if lever.name == "microbatches":
                columns = [self._count(value, shards, stages) for value in values]
                found = np.concatenate([np.broadcast_to(column, shape) for column in columns], axis=axis)
        return found

    @cached_property
    def sequences(self) -> Array:
        """Sequences in a step at every place."""
        return self._along("global_batch", lambda plan: plan.global_batch or self.batch)

    def valid(self, constraints: Constraints) -> NDArray[np.bool_]:
        """Which places obey the rules of validity."""
        repeats = self._along("pipeline_repeats", lambda plan: plan.pipeline_repeats)
        stages, micro = self._total("stage"), self.microbatches
        degrees = Degrees(
            **{axis: self._total(axis) for axis in AXES},
            ici_devices=self._mesh_column(self.meshes.prod(axis=1)),
            dcn_devices=self.incumbent.dcn.devices,
            microbatches=np.maximum(micro, 1),
            pipeline_repeats=np.where(stages > 1, repeats, 1),
            recomputed_parts=self._along("remat", recomputed_parts),
            experts_over=constraints.experts_over,
            split=constraints.split,
        )
        passed = (micro >= 1) & (micro == np.floor(micro))
        first = np.arange(repeats.size).reshape(repeats.shape) == 0
        passed = passed & ((stages > 1) | first)
        for rule in RULES:
            fact = self.sequences if rule.name == "batch" else getattr(constraints, rule.needs)
            if fact is not None:
                passed = passed & rule.holds(degrees, fact)
        return np.broadcast_to(passed, self.shape)

    def _count(self, value: Value, shards: Array, stages: Array) -> Array:
        if value.sequences is not None:
            return self.sequences / (shards * value.sequences)
        said = value.change(self.incumbent).microbatches
        if said is not None:
            return np.full_like(shards, said, dtype=float)
        return np.where(stages > 1, np.maximum(self.sequences / shards, 1.0), 1.0)

    def _mesh_inputs(self, architecture: Architecture) -> PlanInputs:
        one = plan_inputs([self.incumbent], model_inputs(architecture), Workload(global_batch=self.batch))
        layout = PlanInputs(**{each.name: float(np.asarray(getattr(one, each.name))[0]) for each in fields(one)})
        ici = self._ici
        far = {axis: getattr(self.incumbent.dcn, axis) for axis in ("seq", "model", "expert")}
        joined = {axis: ici[axis] * degree for axis, degree in far.items()}
        return replace(layout, replica=ici["replica"], data=ici["data"], stage=ici["stage"], **joined)

    def _lever_inputs(self, architecture: Architecture, workload: Workload) -> dict[str, Array]:
        """Fields of the plan's numbers that a lever changes, along its axis."""
        found: dict[str, Array] = {}
        for axis, (_, values) in enumerate(self.levers, 1):
            plans = [value.change(self.incumbent) for value in values]
            numbers = plan_inputs(plans, model_inputs(architecture), workload)
            for field in fields(numbers):
                column = np.asarray(getattr(numbers, field.name))
                if field.name != "microbatches" and np.ptp(column):
                    found[field.name] = self._lever_column(axis, column)
        return found

    def _workload_inputs(self, architecture: Architecture, workload: Workload) -> WorkloadInputs:
        """The workload's numbers, along the axes of the levers that change them, several of them together."""
        axes = [axis for axis, (lever, _) in enumerate(self.levers, 1) if lever.name in OF_WORKLOAD]
        plans = [self.incumbent]
        for axis in axes:
            plans = [value.change(plan) for plan in plans for value in self.levers[axis - 1][1]]
        shape = [length if axis in axes else 1 for axis, length in enumerate(self.shape)]
        numbers = workload_under_plans(plans, workload, architecture)
        columns = {field.name: getattr(numbers, field.name) for field in fields(numbers)}
        arrays = {name: column.reshape(shape) for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(numbers, **{name: _unique(array) for name, array in arrays.items()})

    def _along(self, name: str, read: Callable[[Plan], float]) -> Array:
        for axis, (lever, values) in enumerate(self.levers, 1):
            if lever.name == name:
                return self._lever_column(axis, np.array([read(value.change(self.incumbent)) for value in values]))
        return np.full((1,) * len(self.shape), read(self.incumbent))

    @cached_property
    def _ici(self) -> dict[str, Array]:
        columns = self.meshes.astype(float).T
        return {axis: self._mesh_column(column) for axis, column in zip(AXES, columns, strict=True)}

    def _total(self, what: str) -> Array:
        if what == "batch_shards":
            return self._total("replica") * self._total("data") * self._total("expert")
        return self._ici[what] * getattr(self.incumbent.dcn, what)

    def _mesh_column(self, column: NDArray) -> Array:
        return np.asarray(column, dtype=float).reshape(-1, *(1 for _ in self.levers))

    def _lever_column(self, axis: int, column: NDArray) -> Array:
        return np.asarray(column, dtype=float).reshape(
            tuple(-1 if place == axis else 1 for place in range(len(self.shape)))
        )


def _unique(array: Array) -> Array:
    """The array with length 1 along each axis that it does not depend on."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        array = first if np.all(array == first) else array
    return array


def first_rows(table: Table, first: Sequence[int]) -> Table:
    """The table with one row in front, and not again below."""
    row = np.array([first], dtype=table.dtype)
    return np.concatenate([row, table[np.any(table != row, axis=1)]])
