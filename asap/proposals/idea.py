"""Untested ideas: changes that no search varies, what they can bring at most, and what they brought elsewhere."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Quantity
from asap.history.record import ChangeKind


class Standing(StrEnum):
    """What the engine can say of a change before it is run."""

    PREDICTED = "predicted"
    BOUNDED = "bounded"
    MEASURE = "must be measured"


class Idea(BaseModel):
    """One change to try beside the proposals."""

    model_config = ConfigDict(frozen=True)

    title: str
    kind: ChangeKind
    change: str = Field(description="in the words of the launcher, compiler or code")
    hypothesis: str = Field(default="", description="which part of the step it shortens, and why")
    refuted_by: str = Field(default="", description="the observation that would refute it")
    how: str = Field(default="", description="the cheapest test")
    standing: Standing
    bound: Quantity | None = Field(default=None, description="share of the step that it touches: more it cannot save")
    effect: Quantity | None = Field(default=None, description="change of the step time that was measured elsewhere")
    runs: int = Field(default=0, description="runs elsewhere that measured it")
    precedents: tuple[str, ...] = Field(default=(), description="IDs of records and notes")
    by: Literal["engine", "model"] = "engine"
