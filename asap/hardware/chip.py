"""A chip as data: every figure with its source.

Bundled chips are in ``asap/hardware/chips/*.toml``, a user's own in ``$ASAP_HOME/chips``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator


class Torus(BaseModel):
    """Inter-chip interconnect of a TPU."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    axes: Literal[2, 3] = Field(description="dimensions of the torus")
    link_bandwidth: PositiveFloat = Field(description="bytes/s of one link in one direction")
    wrap_at: PositiveInt = Field(description="an axis wraps around if its length is a multiple of this")
    wrap_together: bool = Field(
        default=False, description="axes wrap only if all can: optical switches join whole cubes (arXiv:2208.10041)"
    )
    pod: PositiveInt = Field(description="chips of the largest slice")
    latency: PositiveFloat = Field(description="seconds per hop")
    shapes: tuple[str, ...] = Field(default=(), description="documented shapes that are not made of whole cubes")


class Scaleup(BaseModel):
    """The fast domain of a GPU: NVLink, NVSwitch, Infinity Fabric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    domain: PositiveInt = Field(description="GPUs in the domain")
    bandwidth: PositiveFloat = Field(description="bytes/s of one GPU in one direction")
    latency: PositiveFloat = Field(description="seconds per message")


class Network(BaseModel):
    """The network beyond the slice or the domain: DCN, InfiniBand, Ethernet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bandwidth: PositiveFloat = Field(description="bytes/s of one chip in one direction")
    latency: PositiveFloat = Field(description="seconds per message")
    stated: bool = Field(default=False, description="whether it is of the machine at hand, and not the maker's own")


class Chip(BaseModel):
    """An accelerator: rates in FLOP/s and bytes/s, sizes in bytes, of one chip."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="key: v5e, h100, …", pattern=r"^[a-z0-9][a-z0-9.-]*$")
    title: str = Field(description="the vendor's name for it")
    kind: Literal["tpu", "gpu"]
    aliases: tuple[str, ...] = ()
    generation: str | None = Field(
        default=None, description="what profiles call every chip of its kind: Hopper, gfx942; None: they name the chip"
    )
    peak_flops: dict[str, PositiveFloat] = Field(description="dense FLOP/s by precision: bf16, fp8, int8, fp32, …")
    matmul_tile: PositiveInt = Field(description="side of the MXU, or the tile of a tensor-core kernel")
    clock: PositiveFloat | None = Field(default=None, description="Hz; None: not published")
    ported_attention: PositiveFloat = Field(
        default=1.0,
        description="rate of a fused attention kernel written for an older chip, over one written for this chip",
    )
    hbm_bytes: PositiveFloat
    program_hbm_bytes: PositiveFloat | None = Field(
        default=None, description="of that, what the compiler leaves a program; None: all"
    )
    hbm_bandwidth: PositiveFloat
    onchip_bytes: PositiveFloat = Field(description="VMEM of a TPU, L2 of a GPU")
    host_bandwidth: PositiveFloat | None = Field(
        default=None, description="bytes/s between HBM and host memory in one direction; None: not published"
    )
    host_memory: PositiveFloat | None = Field(
        default=None,
        description="bytes for each chip: the memory of its maker's host over the chips of that host; None: not known",
    )
    cores: PositiveInt = Field(default=1, description="TensorCores per chip; cloud names of v2 to v5p count them")
    devices: PositiveInt = Field(default=1, description="JAX devices per chip")
    sparse_cores: int = Field(default=0, ge=0, description="SparseCores per chip that programs can use")
    torus: Torus | None = None
    scaleup: Scaleup | None = None
    network: Network
    assumed: dict[str, str] = Field(
        default_factory=dict, description="ambiguous alias → what is assumed, as a sentence for the reader"
    )
    sources: dict[str, str] = Field(description="field → where its figure comes from")

    @model_validator(mode="after")
    def _is_whole(self) -> "Chip":
        if (self.kind == "tpu") != (self.torus is not None) or (self.kind == "gpu") != (self.scaleup is not None):
            raise ValueError("a tpu needs [torus] and a gpu needs [scaleup], and neither has the other's")
        unsourced = [field for field in _figures(self.model_dump(exclude_defaults=True)) if not self.source(field)]
        if unsourced:
            raise ValueError(f"no source for {', '.join(unsourced)} in [sources]")
        return self

    @property
    def device_capacity(self) -> float:
        """HBM that a program can use of one JAX device, in bytes."""
        return (self.program_hbm_bytes or self.hbm_bytes) / self.devices

    def is_called_like(self, other: "Chip") -> bool:
        """Whether a profile cannot tell the two apart: one chip, or one generation."""
        return self.name == other.name or (self.generation is not None and self.generation == other.generation)

    def source(self, field: str) -> str | None:
        """Where a figure comes from: ``hbm_bandwidth``, ``peak_flops.bf16``."""
        return self.sources.get(field) or self.sources.get(field.partition(".")[0])


def _figures(fields: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and name not in {"sources", "assumed"}:
            yield from _figures(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name
