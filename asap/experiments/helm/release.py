"""What the values of a chart say of the job that it starts (AI-Hypercomputer/gpu-recipes, ``src/helm-charts``).

The chart mounts ``workload_config`` as a file, and runs ``workload_launcher`` with arguments and variables; both are
set from files (``--set-file``), and lie beside the values in many recipes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.files import is_file
from asap.core.numbers import whole_number
from asap.core.text import plain
from asap.experiments.files.documents import read_text
from asap.experiments.files.named_file import NamedFile
from asap.experiments.launch.containers import machine_of

CONFIGURATION, LAUNCHER = "workload_config", "workload_launcher"
_CONFIGURATIONS = (CONFIGURATION, "nemo_config")
_ARGUMENTS = ("defaultArguments", "arguments", "nemoConfigOverrides")
_KEYS = frozenset(("gpus", "image", "configFile", "configPath", "envs", *_ARGUMENTS))
_OF_CHART = frozenset(("queue", "volumes", "network", "tasSettings", "dwsSettings", "gcsSidecarMemoryLimit"))
_LAUNCHER_FILE, _MOUNT = "launcher.sh", "/workload/configs"


@dataclass(frozen=True)
class Release:
    """A job as its chart makes it.

    Args:
        gpus: of all pods; ``None`` where it is not said.
        machine: that pods are placed on, likewise.
        environment: variables of its containers.
        arguments: of the launcher, which hands them to the program.
        configuration: the file that it mounts.
        mounted: the path that it is mounted under.
        launcher: the script that its containers run.
    """

    gpus: int | None
    machine: str | None
    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    configuration: NamedFile | None
    mounted: str
    launcher: NamedFile | None


def is_helm_values(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the values of such a chart."""
    workload = values.get("workload")
    if not isinstance(workload, Mapping) or "kind" in values:
        return False
    return "gpus" in workload or len(_OF_CHART & values.keys()) >= 2


def is_value(key: str) -> bool:
    """Whether an override is a value of the chart."""
    section, _, name = key.partition(".")
    return section in (*_CONFIGURATIONS, LAUNCHER) or (section == "workload" and name.partition("[")[0] in _KEYS)


def release_of(values: Mapping[str, Any], path: Path) -> Release:
    """What values say, with the files that lie beside them.

    Raises:
        ConfigError: a value of the wrong kind.
    """
    workload = values["workload"]
    if not isinstance(workload, Mapping):
        raise ConfigError(f"workload must be a mapping, not {plain(repr(workload), 40)}", where=str(path))
    name = str(workload.get("configFile") or "workload-configuration")
    arguments = (word for key in _ARGUMENTS for word in _listed(workload, key, path))
    return Release(
        gpus=_gpus(workload.get("gpus"), path),
        machine=machine_of(dict(values)),
        environment=_environment(_listed(workload, "envs", path)),
        arguments=tuple(str(word) for word in arguments if word is not None),
        configuration=_file(values, _CONFIGURATIONS, name, path),
        mounted=f"{str(workload.get('configPath') or _MOUNT).rstrip('/')}/{name}",
        launcher=_file(values, (LAUNCHER,), _LAUNCHER_FILE, path),
    )


def _gpus(value: Any, path: Path) -> int | None:
    if value is None:
        return None
    try:
        number = whole_number(value)
    except ValueError:
        number = 0
    if number < 1:
        reason = f"workload.gpus must be a whole number above zero, not {plain(repr(value), 40)}"
        raise ConfigError(reason, where=str(path))
    return number


def _listed(workload: Mapping[str, Any], key: str, path: Path) -> list[Any]:
    """A list, empty where it is not said."""
    value = workload.get(key)
    if value is not None and not isinstance(value, list):
        raise ConfigError(f"workload.{key} must be a list, not {plain(repr(value), 40)}", where=str(path))
    return value or []


def _environment(said: list[Any]) -> dict[str, str]:
    pairs = [(each.get("name"), each.get("value")) for each in said if isinstance(each, Mapping)]
    return {str(name): str(value) for name, value in pairs if name is not None and value is not None}


def _file(values: Mapping[str, Any], keys: tuple[str, ...], name: str, path: Path) -> NamedFile | None:
    """The text that is set, else the file of that name beside the values."""
    text = next((values[key] for key in keys if isinstance(values.get(key), str)), None)
    if text is not None:
        return NamedFile(path / name, text)
    beside = path.parent / Path(name).name
    return NamedFile(beside, read_text(beside)) if beside != path and is_file(beside) else None
