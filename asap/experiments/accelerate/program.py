"""Arguments of the program that Accelerate starts, with those of a file that they name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.experiments.files.named_file import Brought, find_named, missing
from asap.experiments.shell import check_made

CONFIG = "config"
"""The argument of a program that names a YAML of further ones (TRL's ``TrlParser``)."""


def with_file(arguments: Mapping[str, Any], path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """Arguments over those of the YAML that they name.

    Raises:
        ConfigError: it is not there, or not a mapping.
    """
    named = arguments.get(CONFIG)
    if not isinstance(named, str) or not named.endswith((".yaml", ".yml", ".json")):
        return dict(arguments)
    check_made(named, brought or {}, path)
    found = find_named(named, path, brought)
    if found is None:
        raise missing("names the arguments in", named, path, "lay it beside the file")
    return {**found.document().values, **{key: value for key, value in arguments.items() if key != CONFIG}}
