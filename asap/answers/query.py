"""What a query and an answer are.

A query is a frozen model: its docstring and its fields are the schema for language models and MCP, the command of the
chat, and the JSON document. An answer is a frozen model; the order of its fields is the order in which every report
shows them: verdict, what to do, what it brings and how sure, why, the rest.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from asap.answers.inquiry import Inquiry

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
        description="a proposal's rank (1), now, or axes and settings such as data=32 model=4 remat=full; "
        "what it leaves out stays as it is now",
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
