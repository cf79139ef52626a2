"""A diagnosis: bottleneck, findings and their evidence."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Quantity
from asap.profiles import Gap


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

    rule: str = Field(description="name of the rule in asap/diagnosis/rules")
    kind: Bottleneck
    statement: str
    share: float | None = Field(default=None, description="of the time that is accounted for, 0 to 1")
    evidence: tuple[Evidence, ...] = ()
    advice: str | None = Field(default=None, description="what to do or capture next, where it is not a sharding")


class Diagnosis(BaseModel):
    """What holds the run back, in the order of the report."""

    model_config = ConfigDict(frozen=True)

    bottleneck: Bottleneck
    statement: str
    coverage: float | None = Field(description="share of the step or window that the listed operations account for")
    partial: bool = Field(default=False, description="only the leading operations are known")
    findings: tuple[Finding, ...] = ()
    correlation: tuple[str, ...] = Field(default=(), description="what KPIs and operations say together")
    missing: tuple[Gap, ...] = ()
