"""A Plan: how one training step is laid out over the devices.

Text form, read and written: ``data=16 seq=4 model=8 dcn.data=2 microbatches=8 remat=full``.
"""

import math
import re
from enum import StrEnum
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from asap.core.errors import PlanError
from asap.core.text import plain

AXES = ("replica", "data", "seq", "model", "expert", "stage")
Axis = Literal["replica", "data", "seq", "model", "expert", "stage"]
Offload = Literal["optimizer", "parameters", "activations"]

_TERM = re.compile(r"([a-z_.]+)\s*[=:]\s*([^\s,;{}]+)")
_COUNT = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)
_FILLER = re.compile(r"[\s,;{}'\"]*")


class Remat(StrEnum):
    """What the backward pass recomputes instead of keeping.

    ``minimal`` keeps what matrix products write, the next three a part of that, under MaxText's names; ``selective`` is
    Megatron's and keeps all but what is inside attention; ``offload`` keeps products in host memory.
    """

    NONE = "none"
    MINIMAL = "minimal"
    SAVE_DOT_EXCEPT_MLP = "save_dot_except_mlp"
    SAVE_QKV_PROJ = "save_qkv_proj"
    SAVE_OUT_PROJ = "save_out_proj"
    SELECTIVE = "selective"
    FULL = "full"
    OFFLOAD = "offload"


class Mesh(BaseModel):
    """Degree of parallelism along each axis, over one kind of network."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replica: PositiveInt = Field(default=1, description="plain data parallelism")
    data: PositiveInt = Field(default=1, description="data parallelism with sharded parameters (FSDP)")
    seq: PositiveInt = Field(default=1, description="sequence or context parallelism")
    model: PositiveInt = Field(default=1, description="tensor parallelism")
    expert: PositiveInt = Field(default=1, description="expert parallelism")
    stage: PositiveInt = Field(default=1, description="pipeline stages")

    @property
    def devices(self) -> int:
        """Product of all degrees."""
        return math.prod(self.degrees)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees in the order of :data:`AXES`."""
        return (self.replica, self.data, self.seq, self.model, self.expert, self.stage)

    def __str__(self) -> str:
        return " ".join(f"{axis}={degree}" for axis, degree in zip(AXES, self.degrees, strict=True) if degree > 1)


class Plan(BaseModel):
    """A sharding configuration: meshes inside a slice (ICI) and between slices (DCN), and how a step runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ici: Mesh = Mesh()
    dcn: Mesh = Mesh()
    microbatches: PositiveInt | None = Field(
        default=None,
        description="slices of the batch: of the pipeline, or accumulated gradients; None: unknown",
    )
    pipeline_repeats: PositiveInt = Field(default=1, description="virtual stages a device (interleaved schedule)")
    remat: Remat | None = Field(default=None, description="None: unknown")
    offload: tuple[Offload, ...] = Field(default=(), description="what is kept in host memory")

    @property
    def devices(self) -> int:
        """Devices of the whole job."""
        return self.ici.devices * self.dcn.devices

    def degree(self, axis: Axis) -> int:
        """Total degree of an axis over ICI and DCN."""
        return int(getattr(self.ici, axis) * getattr(self.dcn, axis))

    @property
    def batch_shards(self) -> int:
        """Groups of devices that see different sequences: replica × data × expert."""
        return self.degree("replica") * self.degree("data") * self.degree("expert")

    def with_ici(self, **degrees: int) -> "Plan":
        """The same plan with some ICI degrees replaced."""
        return self.model_copy(update={"ici": Mesh(**{**self.ici.model_dump(), **degrees})})

    def __str__(self) -> str:
        terms = [str(self.ici)]
        terms += [f"dcn.{axis}={d}" for axis, d in zip(AXES, self.dcn.degrees, strict=True) if d > 1]
        if self.microbatches is not None:
            terms.append(f"microbatches={self.microbatches}")
        if self.pipeline_repeats > 1:
            terms.append(f"pipeline_repeats={self.pipeline_repeats}")
        if self.remat is not None:
            terms.append(f"remat={self.remat.value}")
        if self.offload:
            terms.append(f"offload={'+'.join(self.offload)}")
        return " ".join(term for term in terms if term) or "data=1"

    @classmethod
    def parse(cls, text: str) -> "Plan":
        """Read the text form; also ``{'model': 8, 'data': 16}`` as the launchers print it.

        Raises:
            PlanError: an unknown term, a repeated one, or a degree that is not a positive integer.
        """
        terms = _terms(text)
        fields: dict[str, Any] = {"ici": {}, "dcn": {}}
        for key, value in terms.items():
            network, _, axis = key.rpartition(".")
            if axis in AXES and network in {"", "ici", "dcn"}:
                fields[network or "ici"][axis] = _count(key, value)
            elif key in {"microbatches", "pipeline_repeats"}:
                fields[key] = _count(key, value)
            elif key == "remat":
                fields[key] = _choice(key, value, tuple(Remat))
            elif key == "offload":
                fields[key] = tuple(_choice(key, part, get_args(Offload)) for part in value.split("+"))
            else:
                raise PlanError(f"unknown axis or setting {key!r}", where=text, hint=f"axes are {', '.join(AXES)}")
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise PlanError(error.errors()[0]["msg"], where=text) from error


def _terms(text: str) -> dict[str, str]:
    terms: dict[str, str] = {}
    bare = text.replace("'", "").replace('"', "")
    if not _FILLER.fullmatch(_TERM.sub("", bare)) or not _TERM.search(bare):
        raise PlanError("is not a plan", where=text or "(empty)", hint='write it like "data=16 seq=4 model=8"')
    for key, value in _TERM.findall(bare):
        if key in terms:
            raise PlanError(f"{key} is given twice", where=text)
        terms[key] = value
    return terms


def _count(key: str, value: str) -> int:
    if not _COUNT.fullmatch(value):
        raise PlanError(f"{key} must be a positive integer, not {plain(value, 20)!r}", where="plan")
    return int(value)


def _choice(key: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise PlanError(f"{key} cannot be {value!r}", where="plan", hint=f"one of {', '.join(choices)}")
    return value
