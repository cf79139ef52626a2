"""YAML that hands commands to a cluster without being a manifest: SkyPilot's tasks (``run``, ``envs``, ``num_nodes``,
``resources.accelerators``; docs.skypilot.co), and jobs whose ``command`` is a list of lines."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.numbers import digits

STARTS = re.compile(
    r"(?:^|[\s/;&(])(?:torchrun|python3?|accelerate|deepspeed|llamafactory-cli|axolotl|swift|megatron|composer|litgpt"
    r"|tune)\s",
    re.MULTILINE,
)
"""What a command begins with that starts a training."""
_KEYS = ("run", "command", "commands", "script")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ACCELERATOR = re.compile(r"(?P<chip>(?!tpu)[\w-]+?)(?::(?P<count>\d{1,4}))?", re.ASCII | re.IGNORECASE)
_OF_SKYPILOT = frozenset(("num_nodes", "file_mounts", "setup"))
"""Beside commands, these make a mapping a task whatever the commands start."""
_DEEPEST = 6


def task_script(values: Mapping[str, Any]) -> str | None:
    """The commands of a task as a script, with the variables that they find; ``None`` where there are none."""
    texts = [*_commands(values, _DEEPEST)]
    commands = next((text for text in texts if STARTS.search(text)), None)
    if commands is None and texts and _OF_SKYPILOT & values.keys():
        commands = texts[-1]
    if commands is None:
        return None
    envs = values.get("envs")
    said = {key: value for key, value in envs.items() if value is not None} if isinstance(envs, dict) else {}
    each, nodes = _each_node(values), _nodes(values)
    if each is not None and nodes is not None:
        said |= {"SKYPILOT_NUM_NODES": nodes, "SKYPILOT_NUM_GPUS_PER_NODE": each}
    lines = [f"export {key}={shlex.quote(str(value))}" for key, value in said.items() if _NAME.fullmatch(str(key))]
    return "\n".join([*lines, commands.replace("$$", "$")])


def task_devices(values: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The chip that a task asks for and how many of all nodes; ``None`` for what it does not say, or leaves to a
    choice: ``{H100:8, H200:8}``."""
    chips, each, nodes = {chip for chip, _ in _accelerators(values)}, _each_node(values), _nodes(values)
    return (next(iter(chips)).casefold() if len(chips) == 1 else None), each * nodes if each and nodes else None


def _each_node(values: Mapping[str, Any]) -> int | None:
    """Accelerators of a node, where all that may be chosen have as many."""
    counts = {count for _, count in _accelerators(values)}
    return next(iter(counts)) if len(counts) == 1 else None


def _nodes(values: Mapping[str, Any]) -> int | None:
    return digits(str(values.get("num_nodes", 1)))


def _accelerators(values: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Accelerators that a node may have: ``H100:8``, ``{H100: 8}``, or several to choose from. A slice of TPUs,
    which counts its chips itself, is none."""
    resources = values.get("resources")
    said = resources.get("accelerators") if isinstance(resources, dict) else None
    if isinstance(said, dict):
        said = [f"{key}:{count}" if count is not None else key for key, count in said.items()]
    found = [_ACCELERATOR.fullmatch(str(each)) for each in (said if isinstance(said, list) else [said] if said else [])]
    return [(each["chip"], int(each["count"] or 1)) for each in found if each] if all(found) else []


def _commands(node: Any, deeper: int) -> Iterator[str]:
    """Texts and lists of lines under keys that hold commands."""
    if not isinstance(node, dict | list) or not deeper:
        return
    for key, value in node.items() if isinstance(node, dict) else ((None, item) for item in node):
        if key in _KEYS and isinstance(value, str):
            yield value
        elif key in _KEYS and isinstance(value, list) and all(isinstance(line, str) for line in value):
            yield "\n".join(value)
        else:
            yield from _commands(value, deeper - 1)
