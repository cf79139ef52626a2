"""What is known of families of changes beside their records: where one applies, and what means that a run has it."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap.hardware import Chip
from asap.history.families import Family
from asap.stacks.launchers import Stack


class Known(BaseModel):
    """What ``ideas.toml`` says of a family."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compiler: Literal["torch", "xla"] | None = None
    stacks: tuple[Stack, ...] | None = None
    needs: str | None = None
    units: str | None = None
    where: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    workload: dict[str, tuple[str, ...]] = {}
    decides: str | None = None
    trial: str | None = None
    searched: bool = False


_TABLE = Path(__file__).with_name("ideas.toml").read_text(encoding="utf-8")
FAMILIES = {name: Known.model_validate(row) for name, row in tomllib.loads(_TABLE).items()}
_UNKNOWN = Known()


def known_of(family: str) -> Known:
    """What the table says of a family; nothing of one that it does not have."""
    return FAMILIES.get(family, _UNKNOWN)


def decisions(families: Iterable[Family]) -> list[tuple[Family, ...]]:
    """Families that exclude each other together, each group and its families in their order."""
    found: dict[str, tuple[Family, ...]] = {}
    for one in families:
        key = known_of(one.name).decides or one.name.partition(",")[0]
        found[key] = (*found.get(key, ()), one)
    return list(found.values())


def has_units(chip: Chip | None, known: Known) -> bool:
    """Whether a chip has what a family uses: float8 and SparseCores need units of their own."""
    if chip is None or known.units is None:
        return True
    return bool(chip.sparse_cores) if known.units == "sparse_cores" else known.units in chip.peak_flops
