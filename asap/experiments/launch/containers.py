"""What the containers of a Kubernetes manifest run, on how many GPUs: PyTorchJob, MPIJob and TrainJob of Kubeflow,
JobSet, Job, and others that hold pods in the same form.

Pods of a container are the product of the counts above it (``replicas``, ``parallelism``, ``numNodes``).
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.numbers import digits
from asap.hardware.instances import find_instance


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


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
    """

    variables: str
    command: str
    gpus: int | None


def containers(values: Mapping[str, Any]) -> list[Container]:
    """Those of a manifest, in their order."""
    return list(_within(values, 1))


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


def _within(value: Any, pods: int | None) -> Iterator[Container]:
    if isinstance(value, list):
        for item in value:
            yield from _within(item, pods)
    if not isinstance(value, Mapping):
        return
    for key in _COUNTS:
        if key in value:
            count = digits(str(value[key]))
            pods = None if count is None or pods is None else pods * count
    resources = value.get("resources") or value.get("resourcesPerNode")
    if "command" in value or "args" in value or isinstance(resources, Mapping):
        yield _container(value, resources, pods)
        return
    for item in value.values():
        yield from _within(item, pods)


def _container(value: Mapping[str, Any], resources: Any, pods: int | None) -> Container:
    said = [str(number) for number in _found(resources)]
    each = digits(said[0]) if said else 0
    gpus = 0 if each == 0 else None if pods is None or each is None else pods * each
    return Container("; ".join(_variables(value.get("env"))), _command(value), gpus)


def _found(resources: Any) -> Iterator[Any]:
    """Numbers of GPUs in limits or requests."""
    for key, value in resources.items() if isinstance(resources, Mapping) else ():
        if _GPU.fullmatch(str(key)):
            yield value
        yield from _found(value)


def _variables(env: Any) -> Iterator[str]:
    for each in _mappings(env):
        name, value = str(each.get("name")), each.get("value")
        if value is not None and _NAME.fullmatch(name) and "\n" not in str(value):
            yield f"export {name}={_quoted(str(value))}"


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
