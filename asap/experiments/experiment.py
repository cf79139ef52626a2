"""The Experiment: everything known about a run, and where each value came from."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from asap.core.numbers import Count
from asap.experiments.observed import MeasuredStep, Observed
from asap.models import Architecture, Workload
from asap.plans import Plan

SCHEMA = "asap.experiment/1"


class HardwareReference(BaseModel):
    """Which chips, and how they are wired. The topology decides; a cloud name may be read in two ways."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, description="as the user or the cloud calls it: v5e-256, h100-64")
    chip: str | None = Field(default=None, description="key of asap/hardware: v5e, v5p, h100, …")
    topology: tuple[Count, ...] | None = Field(default=None, description="chips along each torus axis, a slice")
    slices: Count = 1
    devices: Count | None = Field(default=None, description="JAX devices of the whole job")
    node: Count | None = Field(default=None, description="GPUs of a node; None: as many as the maker's own machine has")
    network: PositiveFloat | None = Field(
        default=None, description="bytes/s of one device between nodes or slices; None: as the chip's maker has it"
    )


class Experiment(BaseModel):
    """The full record behind an ID. Everything but the ID may be unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["asap.experiment/1"] = Field(default=SCHEMA, alias="schema")
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    description: str | None = None
    model: Architecture | None = None
    workload: Workload = Workload()
    hardware: HardwareReference = HardwareReference()
    plan: Plan | None = None
    hyperparameters: dict[str, Any] = Field(default_factory=dict, description="the rest of the configuration")
    code_version: str | None = None
    environment: dict[str, str] = Field(default_factory=dict, description="jax, libtpu, image, XLA flags, …")
    profile_path: str | None = Field(
        default=None, description="a log directory, a run folder, an xplane.pb or a GPU trace"
    )
    facts_path: str | None = Field(default=None, description="stated facts (a Profile as JSON), next to the record")
    measured: MeasuredStep | None = Field(default=None, description="a step time that was measured without a profile")
    observed: Observed | None = Field(default=None, description="what its log says was measured, and how it ended")
    goodput: float | None = Field(default=None, gt=0, le=1, description="productive share of the job's wall time")
    created: datetime | None = None
    provenance: dict[str, str] = Field(default_factory=dict, description="field path → where its value came from")
    notes: tuple[str, ...] = Field(default=(), description="what a reader should know, e.g. two readings of a name")

    def rows(self) -> list[tuple[str, str, str]]:
        """Every known value as path, text and origin."""
        dumped = self.model_dump(mode="json", by_alias=True, exclude={"provenance", "notes"}, exclude_none=True)
        values = _flatten(dumped)
        return [
            (path, str(value), _origin(path, self.provenance)) for path, value in values if value not in ({}, [], "")
        ]


def _flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [leaf for key, item in value.items() for leaf in _flatten(item, f"{path}.{key}" if path else key)]


def _origin(path: str, provenance: dict[str, str]) -> str:
    while path:
        if path in provenance:
            return provenance[path]
        path = path.rpartition(".")[0]
    return ""
