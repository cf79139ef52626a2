"""What the containers of a Kubernetes manifest run, on how many GPUs: PyTorchJob, MPIJob and TrainJob of Kubeflow,
JobSet, Job, and others that hold pods in the same form.

Pods of a container are the product of the counts above it (``replicas``, ``parallelism``, ``numNodes``).
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.numbers import digits
from asap.hardware.instances import find_instance

ConfigMaps = Mapping[str, Mapping[str, str]]
"""Texts by key, by the name of their ConfigMap."""


def config_maps(manifests: list[Mapping[str, Any]]) -> ConfigMaps:
    """Those among the documents of a manifest."""
    found = {}
    for values in manifests:
        data, name = values.get("data"), _at(values, "metadata", "name")
        if values.get("kind") == "ConfigMap" and isinstance(data, Mapping):
            found[str(name)] = {str(key): str(text) for key, text in data.items() if text is not None}
    return found


def volumes_of(said: Any, maps: ConfigMaps) -> dict[str, dict[str, str]]:
    """Files of each volume of a pod, by their path below it."""
    found = {}
    for volume in _mappings(said):
        sources = [volume, *_mappings(_at(volume, "projected", "sources"))]
        files = {path: text for each in sources for path, text in _files(each.get("configMap"), maps)}
        found |= {str(volume.get("name")): files} if files else {}
    return found


def mounted_files(container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Files of a container by the path that it finds them under."""
    found: dict[str, str] = {}
    for mount in _mappings(container.get("volumeMounts")):
        files = volumes.get(str(mount.get("name")), {})
        place, below = PurePosixPath(str(mount.get("mountPath", "/"))), mount.get("subPath")
        if below is None:
            found |= {str(place / path): text for path, text in files.items()}
        elif str(below) in files:
            found[str(place)] = files[str(below)]
    return found


def variables_of(container: Mapping[str, Any], maps: ConfigMaps) -> dict[str, str]:
    """Variables of a container that are values of ConfigMaps."""
    found: dict[str, str] = {}
    for source in _mappings(container.get("envFrom")):
        values = maps.get(str(_at(source, "configMapRef", "name")), {})
        found |= {f"{source.get('prefix') or ''}{key}": text for key, text in values.items()}
    for each in _mappings(container.get("env")):
        named = _at(each, "valueFrom", "configMapKeyRef")
        text = maps.get(str(_at(named, "name")), {}).get(str(_at(named, "key")))
        found |= {} if text is None else {str(each.get("name")): text}
    return found


def _files(source: Any, maps: ConfigMaps) -> Iterator[tuple[str, str]]:
    """Files that a ConfigMap makes in a volume: all its keys, or its items under their paths."""
    name = _at(source, "name")
    values = maps.get(str(name), {})
    items = _mappings(_at(source, "items"))
    named = {str(item.get("key")): str(item.get("path", item.get("key"))) for item in items}
    for key, text in values.items():
        if not items or key in named:
            yield named.get(key, key), text


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


_COUNTS = ("replicas", "parallelism", "numNodes")
_GPU = re.compile(r"(?:nvidia\.com|amd\.com)/gpu|habana\.ai/gaudi")
_SHELLS = frozenset(("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/env"))
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE = re.compile(r"[\w./:=,@%+^~{}$-]+", re.ASCII)
_SELECTORS = ("cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-type")
ACCELERATORS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("accelerators.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Container:
    """A container that is told what to run.

    Args:
        variables: that it is given, as a line of a shell.
        command: as lines of a shell.
        gpus: of all its pods; 0 if it asks for none, ``None`` if a number is not said.
        files: of ConfigMaps that it mounts, by the path that it finds them under.
    """

    variables: str
    command: str
    gpus: int | None
    files: Mapping[str, str]


@dataclass(frozen=True)
class _Pods:
    """How many there are, and the files of their volumes."""

    count: int | None
    volumes: Mapping[str, Mapping[str, str]]


def containers(values: Mapping[str, Any], maps: ConfigMaps) -> list[Container]:
    """Those of a manifest, in their order."""
    return list(_within(values, _Pods(1, {}), maps))


def machine_of(value: Any) -> str | None:
    """The machine, or the chip, that pods are told to be placed on; ``None`` where it is not said."""
    if isinstance(value, Mapping):
        said = next((str(value[key]) for key in _SELECTORS if key in value), "")
        if machine := _machine(said):
            return machine
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for item in items if (found := machine_of(item)) is not None), None)


def _machine(selected: str) -> str | None:
    return ACCELERATORS["gpu"].get(selected) or (selected if find_instance(selected) else None)


def _within(value: Any, pods: _Pods, maps: ConfigMaps) -> Iterator[Container]:
    if isinstance(value, list):
        for item in value:
            yield from _within(item, pods, maps)
    if not isinstance(value, Mapping):
        return
    for key in _COUNTS:
        if key in value:
            count = digits(str(value[key]))
            pods = replace(pods, count=None if count is None or pods.count is None else pods.count * count)
    if "volumes" in value:
        pods = replace(pods, volumes=volumes_of(value["volumes"], maps))
    resources = value.get("resources") or value.get("resourcesPerNode")
    if "command" in value or "args" in value or isinstance(resources, Mapping):
        yield _container(value, resources, pods, maps)
        return
    for item in value.values():
        yield from _within(item, pods, maps)


def _container(value: Mapping[str, Any], resources: Any, pods: _Pods, maps: ConfigMaps) -> Container:
    said = [str(number) for number in _found(resources)]
    each = digits(said[0]) if said else 0
    gpus = 0 if each == 0 else None if pods.count is None or each is None else pods.count * each
    variables = "; ".join(_variables(_environment(value, maps)))
    return Container(variables, _command(value), gpus, mounted_files(value, pods.volumes))


def _found(resources: Any) -> Iterator[Any]:
    """Numbers of GPUs in limits or requests."""
    for key, value in resources.items() if isinstance(resources, Mapping) else ():
        if _GPU.fullmatch(str(key)):
            yield value
        yield from _found(value)


def _environment(value: Mapping[str, Any], maps: ConfigMaps) -> dict[str, str]:
    env = value.get("env")
    own = [each for each in env if isinstance(each, Mapping)] if isinstance(env, list) else []
    return variables_of(value, maps) | {
        str(each.get("name")): str(each["value"]) for each in own if each.get("value") is not None
    }


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _NAME.fullmatch(name) and "\n" not in value:
            yield f"export {name}={_quoted(value)}"


def _command(value: Mapping[str, Any]) -> str:
    """Command and arguments; of ``bash -c`` the script that it is given."""
    parts = [part for key in ("command", "args") for part in _words(value.get(key))]
    parts = [_REFERENCE.sub(r"${\1}", part) for part in parts]
    if parts and parts[0] in _SHELLS:
        flag = next((place for place, part in enumerate(parts) if re.fullmatch(r"-\w*c", part)), None)
        if flag is not None and flag + 1 < len(parts):
            return parts[flag + 1]
    return " ".join(map(_quoted, parts))


def _words(said: Any) -> list[str]:
    return [str(word) for word in said] if isinstance(said, list) else [str(said)] if isinstance(said, str) else []


def _quoted(word: str) -> str:
    """A word for a shell, in which variables stay what they are."""
    if _BARE.fullmatch(word):
        return word
    return shlex.quote(word) if "$" not in word else '"' + word.replace('"', '\\"') + '"'
