"""What scripts under a launcher's interpreter share: lines in, verdicts out, stand-ins for absent packages."""

import contextlib
import io
import json
import sys
from abc import ABCMeta
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def answer(verdict: Callable[[dict[str, Any]], str | None], prepare: Callable[[], None] = lambda: None) -> None:
    """Lines as JSON on standard input, their verdicts on standard output; what a launcher prints is dropped."""
    lines = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        prepare()
        verdicts = [verdict(line) for line in lines]
    json.dump(verdicts, sys.stdout)


def differences(meant: dict[str, int | str], made: dict[str, int | str]) -> str | None:
    """Where they differ; ``None`` where they do not, as far as both are known."""
    found = [f"{key}={made[key]}, meant {value}" for key, value in meant.items() if made.get(key, value) != value]
    return ", ".join(found) or None


class _Anything(ABCMeta):
    """Of classes that have whatever is asked of them."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _class(name)


def _class(name: str) -> type:
    return _Anything(name, (), {"__init__": lambda self, *_, **__: None})


class _StandIn(ModuleType):
    __version__ = "2.14.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _class(name))
        return getattr(self, name)


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        known = any(f"{fullname}.".startswith(f"{package}.") for package in self.packages)
        return ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


def stand_in_for(packages: Sequence[str]) -> None:
    """Let these packages be imported, with classes of no content for all that they have."""
    sys.meta_path.insert(0, _Finder(packages))
