"""What is said of flags: those that are set, and the judgements."""

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.text import plain

_LONGEST = 120


class SetFlag(BaseModel):
    """A flag that the run sets."""

    model_config = ConfigDict(frozen=True)

    name: str
    value: str
    variable: str = Field(description="that holds it; empty for a variable of its own")
    purpose: str | None = Field(description="None: the flag is not in the tables, and nothing is said about it")


class FlagAdvice(BaseModel):
    """A judgement on flags."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["missing", "harmful", "obsolete", "contradictory"]
    title: str
    flags: dict[str, str]
    variable: str
    reason: str
    source: str


class FlagReview(BaseModel):
    """All that can be said of the flags of a run under a plan."""

    model_config = ConfigDict(frozen=True)

    on_record: bool = Field(description="False: whether flags are set is not known, and what is missing may be set")
    set: tuple[SetFlag, ...] = ()
    missing: tuple[FlagAdvice, ...] = ()
    unwise: tuple[FlagAdvice, ...] = ()

    @property
    def exports(self) -> tuple[str, ...]:
        """Lines for a shell that add what is missing to what is set, each with what it is for."""
        holders: dict[str, list[FlagAdvice]] = {}
        for advice in self.missing:
            holders.setdefault(advice.variable, []).append(advice)
        alone = holders.pop("", [])
        lines = [
            f'export {name}="${name} {" ".join(word for one in held for word in _words(one))}" # {_titles(held)}'
            for name, held in holders.items()
        ]
        return (*lines, *(f"export {word} # {one.title}" for one in alone for word in _words(one)))


def _titles(advice: Iterable[FlagAdvice]) -> str:
    return ", ".join(one.title for one in advice)


def _words(advice: FlagAdvice) -> list[str]:
    dashes = "--" if advice.variable else ""
    return [f"{dashes}{name}={value}" for name, value in advice.flags.items()]


def shown(flags: Mapping[str, str]) -> dict[str, str]:
    """Flags of a run, which others wrote, made harmless."""
    return {plain(name, _LONGEST): plain(value, _LONGEST) for name, value in flags.items()}
