"""The tables of flags: what each is for, which are missing when, which do harm. Each judgement has its source."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from asap.flags.situation import NEEDS, Runtime

_TABLES = Path(__file__).parent / "tables"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Judgement(_Entry):
    """When something applies: on which chips and stacks, with which traffic, and what else is set."""

    set: dict[str, str] = {}
    runtime: Runtime | None = None
    chips: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reason: str
    source: str

    @model_validator(mode="after")
    def _is_known(self) -> "Judgement":
        if unknown := {*self.needs, *self.without} - NEEDS:
            raise ValueError(f"unknown needs: {', '.join(sorted(unknown))}")
        return self


class Missing(Judgement):
    """Flags to propose, unless the run sets one that shows it has decided: any of ``unless``, else of ``set``."""

    title: str
    group: str = ""
    unless: tuple[str, ...] = ()


class Unwise(Judgement):
    """Flags that do harm, or nothing: all those in ``set`` at their values, or any of ``any_of`` at any value."""

    kind: Literal["harmful", "obsolete"]
    any_of: tuple[str, ...] = ()
    cause: Literal["attention", "debugging", "links", "network"] | None = None
    """What it may explain of a slow step (:data:`asap.evidence.readings.CauseName`)."""


class FlagTable(_Entry):
    """Flags of one variable of the environment; of ``""``, variables of their own."""

    variable: str
    runtime: Runtime | None = None
    sources: dict[str, str]
    purposes: dict[str, str]
    missing: tuple[Missing, ...] = ()
    unwise: tuple[Unwise, ...] = ()

    @model_validator(mode="after")
    def _has_sources(self) -> "FlagTable":
        judged = {judgement.source for judgement in (*self.missing, *self.unwise)}
        if unknown := judged - self.sources.keys():
            raise ValueError(f"unknown sources: {', '.join(sorted(unknown))}")
        return self


def flag_group(group: str) -> tuple[str, ...]:
    """The flags of a named group, as words of a command."""
    entries = (entry for table in flag_tables() for entry in table.missing if entry.group == group)
    return tuple(f"--{name}={value}" for entry in entries for name, value in entry.set.items())


@cache
def flag_tables() -> tuple[FlagTable, ...]:
    """All tables."""
    files = sorted(_TABLES.glob("*.toml"))
    return tuple(FlagTable.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files)
