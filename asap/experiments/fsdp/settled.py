"""Settings whose values are said, apart from those that a variable of the script decides."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.shell import has_substitution


def settled_apart(said: Mapping[str, Any], path: Path) -> tuple[StackSettings, frozenset[str]]:
    """The settings with a value, and the keys of the others."""
    unsettled = frozenset(key for key, value in said.items() if has_substitution(str(value)))
    return StackSettings({key: value for key, value in said.items() if key not in unsettled}, str(path)), unsettled
