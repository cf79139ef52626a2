"""A reply: what was understood, its text, and the effect of what was put on record."""

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Quantity
from asap.evidence.fact import StatedFact


class Figure(BaseModel):
    """A figure that a reply shows."""

    model_config = ConfigDict(frozen=True)

    what: str
    quantity: Quantity


class Reply(BaseModel):
    """One answer, as the worklog keeps it."""

    model_config = ConfigDict(frozen=True)

    topic: str = Field(description="the query that was asked, or what else the line was")
    text: str
    understood: str | None = Field(default=None, description="free words as the command that was answered")
    offered: tuple[str, ...] = Field(default=(), description="commands to choose from by number")
    facts: tuple[Figure, ...] = ()
    evidence: tuple[StatedFact, ...] = Field(default=(), description="what this message put on record")
    retracted: tuple[StatedFact, ...] = Field(default=(), description="what this message took off the record")
    changed: bool = Field(default=False, description="whether the order of the proposals is another one now")
    ranking: tuple[str, ...] = Field(default=(), description="the proposals after this message, best first")
    on_record: bool = Field(default=False, exclude=True, description="whether the session holds the text already")
