"""The changes between two plans, axis by axis, and the strategy that they make up."""

from dataclasses import dataclass

from asap.plans import AXES, Plan, Remat
from asap.plans.axes import MEANINGS
from asap.plans.remat import Policy
from asap.proposals.principles import PRINCIPLES, Direction, Principle

NAMES = {**MEANINGS, "remat": "rematerialisation"}
LIGHTEST_FIRST = (
    Remat.NONE, Remat.SELECTIVE, Remat.MINIMAL, Remat.SAVE_DOT_EXCEPT_MLP, Remat.SAVE_QKV_PROJ, Remat.SAVE_OUT_PROJ,
    Remat.OFFLOAD, Remat.FULL,
)  # fmt: skip
"""Rematerialisation policies, least recomputation first."""


@dataclass(frozen=True)
class PlanChange:
    """An axis that a plan raises or lowers, or its rematerialisation."""

    axis: str
    direction: Direction
    before: int | str
    after: int | str

    @property
    def principle(self) -> Principle:
        """The principle behind this change."""
        return PRINCIPLES[self.axis, self.direction]

    def __str__(self) -> str:
        return f"{self.axis} {self.before}→{self.after}"


def changes(plan: Plan, incumbent: Plan) -> tuple[PlanChange, ...]:
    """Axes that differ, raised ones first, and rematerialisation where both plans say it."""
    found = [
        PlanChange(
            axis,
            "more" if plan.degree(axis) > incumbent.degree(axis) else "less",
            incumbent.degree(axis),
            plan.degree(axis),
        )
        for axis in AXES
        if plan.degree(axis) != incumbent.degree(axis)
    ]
    return (*sorted(found, key=lambda change: change.direction != "more"), *_rematerialisation(plan, incumbent))


def _rematerialisation(plan: Plan, incumbent: Plan) -> tuple[PlanChange, ...]:
    before, after = incumbent.remat, plan.remat
    if before is None or after is None or before == after:
        return ()
    less = _recomputation(after) < _recomputation(before)
    return (PlanChange("remat", "less" if less else "more", before.value, after.value),)


def _recomputation(policy: Policy) -> int:
    """Rank of a policy; one that saves single tensors stands with those that save a few."""
    return LIGHTEST_FIRST.index(policy if isinstance(policy, Remat) else Remat.SAVE_OUT_PROJ)


def strategy(plan: Plan, incumbent: Plan) -> frozenset[tuple[str, str]]:
    """What kind of move a plan is: what grows and what shrinks."""
    return frozenset((change.axis, change.direction) for change in changes(plan, incumbent))


def title(plan: Plan, incumbent: Plan) -> str:
    """``More data parallelism, less sequence parallelism``."""
    text = ", ".join(f"{change.direction} {NAMES[change.axis]}" for change in changes(plan, incumbent))
    return f"{text[0].upper()}{text[1:]}" if text else "Same sharding"
