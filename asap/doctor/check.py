"""One thing that was looked at, and what was found."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

State = Literal["ok", "optional", "problem"]


class Check(BaseModel):
    """A finding. ``optional`` is what only some commands need."""

    model_config = ConfigDict(frozen=True)

    name: str
    state: State
    found: str
    fix: str | None = Field(default=None, description="what to do about it; given wherever the state is not ok")


def ok(name: str, found: str) -> Check:
    """Nothing to do."""
    return Check(name=name, state="ok", found=found)


def optional(name: str, found: str, fix: str) -> Check:
    """Something is missing that only some commands need."""
    return Check(name=name, state="optional", found=found, fix=fix)


def problem(name: str, found: str, fix: str) -> Check:
    """Something keeps ASAP from working."""
    return Check(name=name, state="problem", found=found, fix=fix)
