"""A diagnosis: bottleneck, findings and their evidence."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Quantity
from asap.profiles import Gap

_CAUSES_SHOWN = 5
_BROKEN = frozenset({"slow_rank"})
"""Causes that are named however little they cost."""


class Bottleneck(StrEnum):
    """What a run waits for most."""

    COMPUTE = "compute"
    HBM = "hbm"
    COMMUNICATION = "communication"
    HOST_TRANSFER = "host_transfer"
    HOST = "host"
    MEMORY_CAPACITY = "memory_capacity"
    IDLE = "idle"
    OPAQUE = "opaque"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"


class Evidence(BaseModel):
    """One fact and its value."""

    model_config = ConfigDict(frozen=True)

    fact: str
    quantity: Quantity


class Finding(BaseModel):
    """What a rule found."""

    model_config = ConfigDict(frozen=True)

    rule: str = Field(description="name of the rule in asap/diagnosis/findings.py")
    kind: Bottleneck
    statement: str
    share: float | None = Field(default=None, description="of the time that is accounted for, 0 to 1")
    evidence: tuple[Evidence, ...] = ()
    advice: str | None = Field(default=None, description="what to do or capture next, where it is not a sharding")


class Cause(BaseModel):
    """Why time is lost, beside the resource that it is lost on."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="name of the entry in asap/diagnosis/causes")
    kind: Bottleneck
    seen: str
    certainty: Literal["stated", "from names"] = Field(
        description="the recording states it, or the names of kernels suggest it"
    )
    share: float = Field(description="of the step or window that the operations concerned take, 0 to 1")
    gain: float = Field(description="of the step or window that could be won at most, 0 to 1: an upper bound")
    advice: str = Field(description="what to change, in the words of the stack")
    statement: str = Field(description="all of that in one sentence")
    source: str


class Diagnosis(BaseModel):
    """What holds the run back, in the order of the report."""

    model_config = ConfigDict(frozen=True)

    bottleneck: Bottleneck
    statement: str
    coverage: float | None = Field(description="share of the step or window that the listed operations account for")
    partial: bool = Field(default=False, description="only the leading operations are known")
    findings: tuple[Finding, ...] = ()
    causes: tuple[Cause, ...] = Field(default=(), description="the largest possible gain first")
    correlation: tuple[str, ...] = Field(default=(), description="what KPIs and operations say together")
    missing: tuple[Gap, ...] = ()

    @property
    def inefficiencies(self) -> tuple[str, ...]:
        """The causes that cost most, each as a sentence."""
        return tuple(f"{cause.statement} [{cause.source}]" for cause in self.leading(_CAUSES_SHOWN))

    def leading(self, count: int) -> tuple[Cause, ...]:
        """So many that cost most, and beyond these what is broken."""
        return tuple(cause for place, cause in enumerate(self.causes) if place < count or cause.name in _BROKEN)
