"""The grammar of changes."""

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import get_args

from asap.core.errors import UsageError
from asap.core.numbers import as_setting
from asap.core.text import plain

_TEXTS = tomllib.loads(files("asap.traces.what_if").joinpath("changes.toml").read_text(encoding="utf-8"))
GRAMMAR, SETTINGS = str(_TEXTS["grammar"]), str(_TEXTS["settings"])

KINDS = ("compute", "communication", "copy", "memset")
CLASSES = ("matmul", "convolution", "attention")
HOST, DATALOADER, BY_NAME = "host", "dataloader", "name~"
NOT_FROM_A_TRACE = ("plan", "layers", "hidden", "sequence", "batch", "microbatches", "schedule", "chip", "ranks")
"""Known wishes that need kernel times for shapes or devices that were never traced."""

_FORM = re.compile(r"(?P<action>[a-z]+):(?P<what>[^=]+?)(?:=(?P<factor>[^=]+))?")
_SPELLINGS = {"cpu": HOST, "data-loader": DATALOADER}


def collectives() -> tuple[str, ...]:
    """Kinds of collectives, by which communication may be changed."""
    from asap.profiles.profile import CollectiveKind

    return get_args(CollectiveKind)


class Action(StrEnum):
    """What is done to it."""

    REMOVE = "remove"
    SCALE = "scale"
    OVERLAP = "overlap"
    EVEN = "even"


@dataclass(frozen=True)
class Change:
    """One change; ``factor`` is for the time of what it concerns."""

    action: Action
    what: str
    factor: float = 0.0

    def __str__(self) -> str:
        return f"{self.action}:{self.what}" + (f"={as_setting(self.factor)}" if self.action is Action.SCALE else "")


def parse_change(text: str) -> Change:
    """``scale:all-reduce=0.5`` → a change.

    Raises:
        UsageError: it is not one, or none that a trace alone can answer.
    """
    wish = re.split(r"[:=]", text.strip(), maxsplit=1)[0]
    if wish in NOT_FROM_A_TRACE:
        raise UsageError(
            f"{wish} needs times of kernels that the trace does not hold",
            where=plain(text, 80),
            hint="say what was traced: --experiment ID, whose model, batch, hardware and plan are known",
        )
    found = _FORM.fullmatch(text.strip())
    action = found["action"] if found else ""
    if found is None or action not in set(Action):
        raise _unknown(text, "is not a change")
    what = _SPELLINGS.get(found["what"].strip(), found["what"].strip())
    _check_target(text, Action(action), what)
    if (found["factor"] is not None) != (action == Action.SCALE):
        raise _unknown(text, "needs a factor" if action == Action.SCALE else "takes no factor")
    return Change(Action(action), what, _factor(text, found["factor"]) if found["factor"] else 0.0)


def _check_target(text: str, action: Action, what: str) -> None:
    communication = ("communication", *collectives())
    every = (HOST, DATALOADER, *KINDS, *CLASSES, *collectives())
    if action is Action.OVERLAP:
        if what not in communication:
            raise _unknown(text, "concerns communication only")
    elif action is Action.EVEN and what in (HOST, DATALOADER):
        raise _unknown(text, "concerns operations of devices only")
    elif what not in every and not (what.startswith(BY_NAME) and len(what) > len(BY_NAME)):
        raise _unknown(text, f"{plain(what, 40)!r} is nothing that can be changed")


def _factor(text: str, factor: str) -> float:
    try:
        value = float(factor)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise _unknown(text, "needs a factor of zero or more")
    return value


def _unknown(text: str, message: str) -> UsageError:
    return UsageError(message, where=plain(text, 80), hint="`asap trace what-if --help` lists the changes")
