"""The changes between two plans, axis by axis, and the strategy that they make up."""

from collections.abc import Iterator
from dataclasses import dataclass

from asap.levers.state_precision import STATE_SETTINGS
from asap.levers.table import LEVERS, changed_levers
from asap.plans import AXES, Plan
from asap.plans.axes import MEANINGS
from asap.plans.remat import recomputed_tensors
from asap.proposals.reasons.principle_of import principle_of
from asap.proposals.reasons.principles import Direction, Principle

NAMES = {**MEANINGS, **{lever.name: lever.title for lever in LEVERS}}
ALONE = " alone"
"""Ends the strategy of a plan that changes one thing only."""
LEVER_WORDS: dict[tuple[str, Direction], str] = {
    ("host_activations", "more"): "activations in host memory",
    ("host_activations", "less"): "activations in HBM",
    ("stage", "less"): "fewer pipeline stages",
    ("microbatches", "more"): "{after} microbatches",
    ("microbatches", "less"): "fewer microbatches",
    ("pipeline_repeats", "less"): "fewer virtual pipeline stages",
    ("optimizer_offload", "more"): "optimizer state in host memory",
    ("optimizer_offload", "less"): "optimizer state in HBM",
    ("parameter_offload", "more"): "parameters in host memory",
    ("parameter_offload", "less"): "parameters in HBM",
    ("loss_chunks", "more"): "loss in {after} parts",
    ("first_moment", "less"): "first moment in {after}",
    ("second_moment", "less"): "second moment in {after}",
    ("weight_precision", "less"): "weights in {after}",
    ("optimizer", "less"): "{after} as optimizer",
    ("global_batch", "more"): "batch of {after} sequences",
}
"""How a title says a change of a lever that is not more or less of something."""


@dataclass(frozen=True)
class PlanChange:
    """An axis that a plan raises or lowers against the incumbent, or a lever."""

    axis: str
    direction: Direction
    before: int | str
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
        return "remat" if self.axis == "host_activations" else self.axis

    def __str__(self) -> str:
        return f"{self.name} {self.before}→{self.after}"


def changes(plan: Plan, incumbent: Plan, main: str = "") -> tuple[PlanChange, ...]:
    """Axes that differ, raised ones first, and levers; before them those of the main strategy."""
    found = [
        PlanChange(
            axis,
            "more" if plan.degree(axis) > incumbent.degree(axis) else "less",
            incumbent.degree(axis),
            plan.degree(axis),
            plan,
            incumbent,
        )
        for axis in AXES
        if plan.degree(axis) != incumbent.degree(axis)
    ]
    ordered = (*sorted(found, key=lambda change: change.direction != "more"), *_levers(plan, incumbent))
    named = main.removesuffix(ALONE).split("+")
    return tuple(sorted(ordered, key=lambda one: not {one.name, f"{one.direction} {one.axis}"} & {*named}))


def _levers(plan: Plan, incumbent: Plan) -> Iterator[PlanChange]:
    for lever in changed_levers(plan, incumbent):
        if lever.name == "remat" and (plan.remat is None or incumbent.remat is None):
            continue
        if lever.name == "remat" and plan.moves_activations != incumbent.moves_activations:
            axis, more = "host_activations", plan.moves_activations
        else:
            axis, more = lever.name, _amount(plan, lever.name) > _amount(incumbent, lever.name)
        way: Direction = "more" if more else "less"
        yield PlanChange(axis, way, lever.read(incumbent), lever.read(plan), plan, incumbent)


def _amount(plan: Plan, lever: str) -> float:
    """How far a lever is pulled; of a precision, its bytes; of an optimizer, its moments."""
    remat = recomputed_tensors(plan.remat) if plan.remat else 0
    amounts = {
        "remat": remat,
        "microbatches": plan.microbatches or 1,
        "pipeline_repeats": plan.pipeline_repeats,
        "optimizer_offload": "optimizer" in plan.offload,
        "parameter_offload": "parameters" in plan.offload,
        "loss_chunks": plan.loss_chunks or 1,
        "optimizer": {"muon": 1}.get(plan.optimizer or "", 2),
        "global_batch": plan.global_batch or 0,
        **{name: {"bf16": 2}.get(getattr(plan, name), 4) for name in STATE_SETTINGS},
    }
    return float(amounts[lever])


def strategy(plan: Plan, incumbent: Plan) -> frozenset[tuple[str, str]]:
    """What kind of move a plan is: what grows and what shrinks."""
    return frozenset((change.axis, change.direction) for change in changes(plan, incumbent))


def title(plan: Plan, incumbent: Plan, main: str = "") -> str:
    """``More data parallelism, less sequence parallelism``, the main strategy first."""
    text = ", ".join(_words(change) for change in changes(plan, incumbent, main))
    return f"{text[0].upper()}{text[1:]}" if text else "Same sharding"


def _words(change: PlanChange) -> str:
    said = LEVER_WORDS.get((change.axis, change.direction))
    return said.format(after=change.after) if said else f"{change.direction} {NAMES[change.axis]}"
