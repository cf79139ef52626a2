"""The changes between two plans, axis by axis, and the strategy that they make up."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from asap.levers.state import OFFLOAD, STATE, STATE_SETTINGS
from asap.levers.table import LEVERS, changed_levers
from asap.models.workload import FoldedAxis
from asap.plans import AXES, Plan
from asap.plans.axes import MEANINGS
from asap.plans.remat import recomputed_tensors, saved_tensors
from asap.plans.validity import Degrees
from asap.prediction.evaluation import GridEvaluation
from asap.proposals.principles import HOST_MAKES_ROOM, Direction, Principle, principle_of

NAMES = {**MEANINGS, **{lever.name: lever.title for lever in LEVERS}}
ALONE = " alone"
"""Ends the strategy of a plan that changes one thing only."""
LEVER_WORDS: dict[tuple[str, Direction], str] = {
    ("stage", "less"): "fewer pipeline stages",
    ("microbatches", "more"): "{after} microbatches",
    ("microbatches", "less"): "fewer microbatches",
    ("pipeline_repeats", "less"): "fewer virtual pipeline stages",
    ("optimizer_offload", "more"): "optimizer state in host memory",
    ("optimizer_offload", "less"): "optimizer state in HBM",
    ("parameters_offload", "more"): "parameters in host memory",
    ("parameters_offload", "less"): "parameters in HBM",
    ("loss_chunks", "more"): "loss in {after} parts",
    ("first_moment", "less"): "first moment in {after}",
    ("second_moment", "less"): "second moment in {after}",
    ("weight_precision", "less"): "weights in {after}",
    ("optimizer", "less"): "{after} as optimizer",
    ("global_batch", "more"): "batch of {after} sequences",
}
"""How a title says a change of a lever that is not more or less of something."""
_MOVED = {f"{what}_offload": what for what in STATE}


@dataclass(frozen=True)
class PlanChange:
    """An axis that a plan raises or lowers against the incumbent, or a lever; before is ``None`` where no incumbent is
    known, and it is one device that the plan is set against."""

    axis: str
    direction: Direction
    before: int | str | None
    after: int | str
    plan: Plan
    incumbent: Plan

    @property
    def principle(self) -> Principle:
        """Why it helps, and what it costs; raises KeyError where nothing is on record about it."""
        return principle_of(self.axis, self.direction, self.plan, self.incumbent)

    @property
    def name(self) -> str:
        """Of the axis or of the lever, as a plan says it."""
        return "remat" if self.axis == "host_activations" else "offload" if self.axis in _MOVED else self.axis

    def __str__(self) -> str:
        return f"{self.name}={self.after}" if self.before is None else f"{self.name} {self.before}→{self.after}"


def changes(
    plan: Plan, known: Plan | None, main: str = "", experts_over: tuple[FoldedAxis, ...] = ()
) -> tuple[PlanChange, ...]:
    """Axes that differ from what is known to run, raised ones first, and levers; before them those of the main
    strategy. Where experts lie over other axes as well, ``expert`` is all devices that they lie over."""
    incumbent = known or Plan()
    now, then = ({axis: each.degree(axis) for axis in AXES} for each in (incumbent, plan))
    for each, degrees in ((incumbent, now), (plan, then)):
        degrees["expert"] = Degrees.of(each, experts_over).expert_devices
    found = [
        PlanChange(
            axis,
            "more" if then[axis] > now[axis] else "less",
            now[axis] if known else None,
            then[axis],
            plan,
            incumbent,
        )
        for axis in AXES
        if then[axis] != now[axis]
    ]
    ordered = (*sorted(found, key=lambda change: change.direction != "more"), *_levers(plan, incumbent))
    named = main.removesuffix(ALONE).split("+")
    return tuple(sorted(ordered, key=lambda one: not {one.name, f"{one.direction} {one.axis}"} & {*named}))


def _levers(plan: Plan, incumbent: Plan) -> Iterator[PlanChange]:
    for lever in changed_levers(plan, incumbent):
        if lever.name == "remat" and (plan.remat is None or incumbent.remat is None):
            continue
        if lever is OFFLOAD:
            yield from _moved(plan, incumbent)
            continue
        if lever.name == "remat" and _waits_elsewhere(plan, incumbent):
            axis, more = "host_activations", _on_host(plan) > _on_host(incumbent)
        else:
            axis, more = lever.name, _amount(plan, lever.name) > _amount(incumbent, lever.name)
        way: Direction = "more" if more else "less"
        yield PlanChange(axis, way, lever.read(incumbent), lever.read(plan), plan, incumbent)


def _moved(plan: Plan, incumbent: Plan) -> Iterator[PlanChange]:
    """The parts of the state that go to host memory or come back, a change each."""
    before, after = OFFLOAD.read(incumbent), OFFLOAD.read(plan)
    for axis, what in _MOVED.items():
        if (there := what in plan.offload) != (what in incumbent.offload):
            yield PlanChange(axis, "more" if there else "less", before, after, plan, incumbent)


def _waits_elsewhere(plan: Plan, incumbent: Plan) -> bool:
    """Whether activations begin or cease to go to host memory, or nothing changes but where they wait."""
    if plan.moves_activations != incumbent.moves_activations:
        return True
    return _amount(plan, "remat") == _amount(incumbent, "remat") and _on_host(plan) != _on_host(incumbent)


def _on_host(plan: Plan) -> int:
    """Activations of a layer that wait in host memory, its input among them."""
    return plan.moves_inputs + (len(saved_tensors(plan.remat).host) if plan.remat else 0)


def _amount(plan: Plan, lever: str) -> float:
    """How far a lever is pulled; of a precision, its bytes; of an optimizer, its moments."""
    remat = recomputed_tensors(plan.remat) if plan.remat else 0
    amounts = {
        "remat": remat,
        "microbatches": plan.microbatches or 1,
        "pipeline_repeats": plan.pipeline_repeats,
        "sequence_parallel": bool(plan.sequence_parallel),
        "loss_chunks": plan.loss_chunks or 1,
        "optimizer": {"muon": 1}.get(plan.optimizer or "", 2),
        "global_batch": plan.global_batch or 0,
        **{name: {"bf16": 2}.get(getattr(plan, name), 4) for name in STATE_SETTINGS},
    }
    return float(amounts[lever])


@lru_cache(maxsize=1 << 14)
def strategy(plan: Plan, incumbent: Plan) -> frozenset[tuple[str, str]]:
    """What kind of move a plan is: what grows and what shrinks."""
    return frozenset((change.axis, change.direction) for change in changes(plan, incumbent))


def title(plan: Plan, incumbent: Plan | None, main: str = "", experts_over: tuple[FoldedAxis, ...] = ()) -> str:
    """``More data parallelism, less sequence parallelism``, the main strategy first; where no incumbent is known, what
    the mesh is: ``FSDP 16, tensor parallelism 4``."""
    if incumbent is None:
        text = ", ".join(f"{MEANINGS[axis]} {plan.degree(axis)}" for axis in AXES if plan.degree(axis) > 1)
        return f"{text[0].upper()}{text[1:]}" if text else "One device"
    text = ", ".join(_words(change) for change in changes(plan, incumbent, main, experts_over))
    return f"{text[0].upper()}{text[1:]}" if text else "Same sharding"


def _words(change: PlanChange) -> str:
    if change.axis == "host_activations":
        return _host_words(change)
    said = LEVER_WORDS.get((change.axis, change.direction))
    return said.format(after=change.after) if said else f"{change.direction} {NAMES[change.axis]}"


def _host_words(change: PlanChange) -> str:
    """Where activations wait, and whether more or less of a layer is computed again."""
    recomputed = _amount(change.plan, "remat") - _amount(change.incumbent, "remat")
    if change.direction == "more":
        if change.principle is HOST_MAKES_ROOM:
            return "less rematerialisation, some activations in host memory"
        return f"{'more rematerialisation, ' if recomputed > 0 else ''}activations in host memory"
    return "more rematerialisation, fewer activations in host memory" if recomputed > 0 else "activations in HBM"


MESH = 0
"""The axis of a grid along which the mesh changes; the others are levers."""

Places = NDArray[np.int64]
"""Indices into a grid, of shape (places, axes)."""


def kinds(found: GridEvaluation, places: Places, fits_now: bool) -> list[str]:
    """A lever, or the direction in which the mesh moves, and whether it is all that changes.

    Where the run does not fit as it is, what makes it fit: every lever that is changed.
    """
    axes = range(places.shape[1])
    if not fits_now:
        return ["+".join(_lever(found, axis) for axis in axes if place[axis]) for place in places]
    brought = np.stack([_brought(found, places, axis) for axis in axes], axis=1)
    main = np.argmax(np.where(places == 0, -np.inf, brought), axis=1)
    names = np.array([_lever(found, axis) for axis in axes])[main]
    names = np.where(main == MESH, _directions(found.grid.meshes)[places[:, MESH]], names)
    return np.where(np.count_nonzero(places, axis=1) == 1, np.char.add(names, ALONE), names).tolist()


def _brought(found: GridEvaluation, places: Places, axis: int) -> NDArray[np.float64]:
    """Gain that a place loses if one change is taken back; none where it only makes room for another one."""
    back = places.copy()
    back[:, axis] = 0
    index, without = tuple(places.T), tuple(back.T)
    runs = found.fits[without] & found.valid[without]
    return np.where(runs, found.gain[index] - found.gain[without], 0.0)


def _lever(found: GridEvaluation, axis: int) -> str:
    return "mesh" if axis == MESH else found.grid.levers[axis - 1][0].name


def _directions(meshes: NDArray[np.int64]) -> NDArray[np.str_]:
    """The axis that each mesh moves most, raised or lowered; data and replica only where nothing else moves."""
    steps = np.log2(meshes / meshes[0]) * np.where(np.isin(AXES, ("replica", "data")), 0.01, 1.0)
    leading = np.argmax(np.where(steps < 0, -1.5 * steps, steps), axis=1)
    moved = zip(leading, steps[np.arange(len(meshes)), leading], strict=True)
    return np.array([f"{'more' if step > 0 else 'less'} {AXES[axis]}" for axis, step in moved])
