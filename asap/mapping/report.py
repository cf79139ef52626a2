"""What ``asap map check`` and ``asap map format`` report."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.mapping.language.feedback import Feedback

_FROZEN = ConfigDict(frozen=True, populate_by_name=True)


class CheckReport(BaseModel):
    """Whether a program passes, and everything that is wrong with it."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    valid: bool
    decisions: int
    feedback: tuple[Feedback, ...]
    unchecked: tuple[str, ...] = Field(description="what could not be checked, and for want of what")


class FormatReport(BaseModel):
    """A program in its one form."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    text: str
