"""All tables of stacks, by name and by the framework of a record."""

import importlib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from asap.stacks.spec import Spec

STACK = "asap.stack"
"""Among settings on record: the name of the stack that takes them."""
_FORMER = "program_under_fsdp"
"""What records of earlier releases have instead."""
_FOLDER = Path(__file__).parent
_TABLE = "spec.toml"


@cache
def specs() -> Mapping[str, Spec]:
    """Every table, by the name of its folder."""
    folders = [path.parent.name for path in sorted(_FOLDER.glob(f"*/{_TABLE}"))]
    return {name: spec(name) for name in folders if not _own_values(name).get("abstract")}


@cache
def spec(folder: str) -> Spec:
    """The table in a folder."""
    return Spec.model_validate(_values(folder))


@cache
def abstract(folder: str) -> Spec:
    """A table that is no stack by itself: arguments of programs that other stacks shard."""
    return Spec.model_validate({"name": folder} | _values(folder))


def capture_of(folder: str) -> str:
    """How a run by the table in a folder is profiled, also by one that others extend; empty where it is not said."""
    return str(_values(folder).get("capture", "")) if (_FOLDER / folder / _TABLE).exists() else ""


@cache
def by_framework(framework: str | None) -> Spec | None:
    """The table of a record's framework; ``None`` where it has none."""
    said = (framework or "").casefold()
    return next((one for one in specs().values() if one.framework.casefold() == said), None)


def spec_of(contract: str, settings: Mapping[str, object]) -> Spec | None:
    """The table that settings on record are written by: the one they name, or the only one of a key of the contract."""
    said = settings.get(STACK, settings.get(_FORMER))
    found = [one for one in specs().values() if said in (None, one.name) and one.contract == contract]
    return found[0] if len(found) == 1 else None


@cache
def irrelevant(folder: str) -> frozenset[str]:
    """Settings of a stack that change neither plan nor workload nor model (``irrelevant.txt``)."""
    path = _FOLDER / folder / "irrelevant.txt"
    return frozenset(path.read_text(encoding="utf-8").split()) if path.exists() else frozenset()


@cache
def code(folder: str) -> ModuleType | None:
    """What of a stack's algebra no table says: ``<name>/stack.py``, of the table or of the one that it extends."""
    extended = _own_values(folder).get("extends")
    if (_FOLDER / folder / "stack.py").exists():
        return importlib.import_module(f"{__package__}.{folder}.stack")
    return code(extended) if extended else None


def folder_of(table: Spec) -> str:
    """Where a table lies."""
    return next(folder for folder, one in specs().items() if one.name == table.name)


def _own_values(folder: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / folder / _TABLE).read_text(encoding="utf-8"))


def _values(folder: str) -> dict[str, Any]:
    own = _own_values(folder)
    own.pop("abstract", None)
    extended = own.pop("extends", None)
    return merged(_values(extended), own) if extended else own


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping laid over another: sections are merged, all else is replaced."""
    both = {key for key in below.keys() & above.keys() if isinstance(below[key], dict) and isinstance(above[key], dict)}
    return {**below, **above, **{key: merged(below[key], above[key]) for key in both}}
