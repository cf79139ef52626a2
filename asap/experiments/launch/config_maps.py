"""What pods take from the ConfigMaps of their manifest: files that they mount, and variables
(kubernetes.io/docs/concepts/configuration/configmap)."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

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
