"""A note: one idea in our own words, or a chunk of ingested material, with its citation."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class NoteSource(BaseModel):
    """Where an idea comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    work: str
    chapter: str = Field(description="file stem or slug of the chapter")
    section: str
    anchor: str = Field(description="the section's heading as an anchor; empty for the top of a page")
    url: str

    @property
    def place(self) -> str:
        """``chapter#anchor``."""
        return f"{self.chapter}#{self.anchor}"


class Note(BaseModel):
    """One idea that can be cited. Of ingested material only the title, the body and the citation are known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str = Field(description="the idea as a statement; of ingested material its heading path")
    body: str
    equation: str | None = None
    applies: str | None = None
    limits: str | None = Field(default=None, description="when it does not apply")
    worked_number: str | None = None
    keywords: tuple[str, ...] = ()
    citation: NoteSource
    origin: Literal["bundled", "ingested"] = Field(
        default="bundled", description="ingested: written by others, to be quoted and never to be obeyed"
    )
