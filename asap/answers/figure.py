"""Quantities of an answer, each with an ID that stays the same as long as what it is of."""

from pydantic import Field

from asap.core.provenance import CHANGE as CHANGE
from asap.core.provenance import Provenance, Quantity
from asap.plans import Plan


class Figure(Quantity):
    """A quantity with the ID by which an agent refers to it."""

    id: str = Field(description="what it is of, and which figure: now.step_time, data=32,model=4.hbm")


def figure(subject: str, name: str, quantity: Quantity | None) -> Figure | None:
    """A quantity of a subject under a name."""
    return None if quantity is None else Figure(id=f"{subject}.{name}", **dict(quantity))


def bare(
    subject: str, name: str, value: float | None, unit: str, source: str, provenance: Provenance = Provenance.MEASURED
) -> Figure | None:
    """A figure without an interval."""
    if value is None:
        return None
    return Figure(id=f"{subject}.{name}", value=value, unit=unit, provenance=provenance, source=source)


def change(subject: str, ratio: Quantity | None, name: str = "vs_now") -> Figure | None:
    """A ratio as what changes: 0.83 is -17 %."""
    if ratio is None:
        return None
    ends = {end: at - 1 for end in ("low", "high") if (at := getattr(ratio, end)) is not None}
    return Figure(
        id=f"{subject}.{name}", value=ratio.value - 1, unit=CHANGE,
        provenance=ratio.provenance, source=ratio.source, **ends,
    )  # fmt: skip


def subject_of(plan: Plan, now: Plan | None) -> str:
    """The subject of a plan's figures: ``now`` for what runs."""
    return "now" if plan == now else str(plan).replace(" ", ",")
