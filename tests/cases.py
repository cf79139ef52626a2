"""Cases of tests that are data: `tests/data/cases/ROOM.yaml` has them by module, then by the name of the test."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

CASES = Path(__file__).with_name("data") / "cases"
Test = TypeVar("Test", bound=Callable[..., Any])


@cache
def of_room(room: str) -> dict[str, dict[str, Any]]:
    return yaml.load((CASES / f"{room}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def kept(module: str) -> dict[str, Any]:
    """What is kept for a module of tests, by name.

    Args:
        module: its ``__file__``.
    """
    path = Path(module)
    return of_room(path.parent.name)[path.stem]


def listed(value: Any) -> Any:
    """A value as kept data has it: with lists for tuples."""
    if isinstance(value, dict):
        return {key: listed(each) for key, each in value.items()}
    return [listed(each) for each in value] if isinstance(value, tuple | list) else value


def cases(arguments: str) -> Callable[[Test], Test]:
    """Parametrise a test with the rows that are kept under its name."""

    def parametrised(test: Test) -> Test:
        return pytest.mark.parametrize(arguments, kept(test.__code__.co_filename)[test.__name__])(test)

    return parametrised
