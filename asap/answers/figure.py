"""What a query, an answer and its quantities are; each quantity has an ID."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import CHANGE as CHANGE
from asap.core.units import Provenance, Quantity
from asap.plans import Plan

if TYPE_CHECKING:
    from asap.answers.inquiry import Inquiry


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


LINE = "line"
"""Role of a field that holds lines to paste, which no report breaks or rounds."""
DETAIL = "detail"
"""Role of a field that is left out where several rows stand in one table."""
Lines = Annotated[tuple[str, ...], Field(default=(), json_schema_extra={"role": LINE})]
PlanName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=400,
        description="rank (1), now, or what differs from now: data=32 model=4",
    ),
]


class Part(BaseModel):
    """A row or a section of an answer."""

    model_config = ConfigDict(frozen=True)


class Answer(Part):
    """What a query found. A field that is unknown is ``None`` or empty."""


class Query(BaseModel, ABC):
    """One question about a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: ClassVar[bool] = False
    """Whether it changes what is known of the run."""

    @abstractmethod
    def answer(self, inquiry: "Inquiry") -> Answer:
        """The answer.

        Raises:
            AsapError: what is asked for is not known, cannot be read, or cannot run.
        """
