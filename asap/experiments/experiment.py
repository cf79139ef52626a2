"""The Experiment: everything known about a run, where each value came from, and its hardware."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from asap.core.units import Count
from asap.experiments.observed import MeasuredStep, Observed
from asap.hardware import ResolvedHardware, load_chip, parse_topology, resize_node, resolve_hardware, set_network
from asap.hardware.instances import chips_per_node
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

    def knowing(
        self,
        *notes: str,
        first: tuple[str, ...] = (),
        provenance: Mapping[str, str] | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> "Experiment":
        """The record with fields in place of those that it has, and sources, settings and notes beside its own, or
        before them."""
        beside = {"provenance": self.provenance | dict(provenance or {}), "notes": (*first, *self.notes, *notes)}
        own = self.hyperparameters | dict(hyperparameters or {})
        return self.model_copy(update=beside | {"hyperparameters": own} | fields)

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


def refer_to_hardware(
    name: str | None = None,
    topology: str | Sequence[int] | None = None,
    slices: int | None = None,
    devices: int | None = None,
) -> tuple[HardwareReference, tuple[str, ...]]:
    """The reference, and notes on how a name was read (``v5p-512`` has two readings; the topology decides).

    Without ``slices`` (and ``devices``, which count the whole job) the number of slices stays unsaid, and a
    configuration may say it. A topology without a name is kept; the chip is then unknown. Slices of no more GPUs than a
    node holds are nodes.

    Raises:
        NotFoundError: the chip is unknown.
        ConfigError: the parts contradict each other.
    """
    said: dict[str, Any] = {} if slices is None and devices is None else {"slices": slices or 1}
    if not name:
        return HardwareReference(topology=parse_topology(topology), devices=devices, **said), ()
    resolved = resolve_hardware(name, topology, slices or 1, devices)
    found = resolved.slice
    usual = chips_per_node(found.chip)
    if found.slices > 1 and usual is not None and found.chips_per_slice <= usual:
        return refer_to_hardware(f"{found.slices}x{found.chips_per_slice}x{found.chip.name}")
    if found.slices != 1:
        said = {"slices": found.slices}
    node = chips_per_node(found.chip)
    if node is not None and node < (chips_per_node(load_chip(found.chip.name)) or 0):
        said["node"] = node
    reference = HardwareReference(
        name=name, chip=found.chip.name, topology=found.topology, devices=found.devices, **said
    )
    return reference, resolved.notes


def resolve_reference(reference: HardwareReference) -> ResolvedHardware:
    """The slice that a reference describes, with its nodes and its network.

    Raises:
        NotFoundError: the chip is unknown.
        ConfigError: the parts contradict each other, or do not say how many chips there are.
    """
    name = reference.name or reference.chip
    resolved = resolve_hardware(name, reference.topology, reference.slices, reference.devices)
    found = resolved.slice if reference.node is None else resize_node(resolved.slice, reference.node)
    found = found if reference.network is None else set_network(found, reference.network)
    return ResolvedHardware(found, resolved.notes)
