"""A plan in a YAML of Primus: the settings of its backend, below ``overrides`` of the module that trains."""

from collections.abc import Mapping
from typing import Any

import yaml

MODULE = "primus_module"
"""Among a run's settings: the module of the YAML that trains."""


def is_primus(settings: Mapping[str, object] | None) -> bool:
    """Whether Primus starts the run."""
    return settings is not None and MODULE in settings


def lines_to_paste(changed: Mapping[str, str | bool | None], settings: Mapping[str, object]) -> str:
    """Settings by dotted key as YAML, in their place; ``None`` takes a setting back."""
    overrides: dict[str, Any] = {}
    for key, value in changed.items():
        *sections, name = key.split(".")
        inner = overrides
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = yaml.safe_load(value) if isinstance(value, str) else value
    document = {"modules": {str(settings[MODULE]): {"overrides": overrides}}} if overrides else {}
    return yaml.safe_dump(document, sort_keys=False).rstrip() if document else ""
