"""YAML that hands commands to a cluster without being a manifest: SkyPilot's tasks (``run``, ``envs``, ``num_nodes``,
``resources.accelerators``; docs.skypilot.co), and jobs whose ``command`` is a list of lines."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.numbers import digits
from asap.experiments.launch.cloud_jobs import STARTS

_KEYS = ("run", "command", "commands", "script")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ACCELERATOR = re.compile(r"(?P<chip>[\w-]+?)(?::(?P<count>\d+))?")
_DEEPEST = 6


def task_script(values: Mapping[str, Any]) -> str | None:
    """The commands of a task as a script, with the variables that they find; ``None`` where there are none."""
    commands = next((text for text in _commands(values, _DEEPEST) if STARTS.search(text)), None)
    if commands is None:
        return None
    envs = values.get("envs")
    said = {key: value for key, value in envs.items() if value is not None} if isinstance(envs, dict) else {}
    chips, nodes = accelerators(values), digits(str(values.get("num_nodes", 1)))
    if chips is not None and nodes is not None:
        said |= {"SKYPILOT_NUM_NODES": nodes, "SKYPILOT_NUM_GPUS_PER_NODE": chips[1]}
    lines = [f"export {key}={shlex.quote(str(value))}" for key, value in said.items() if _NAME.fullmatch(str(key))]
    return "\n".join([*lines, commands.replace("$$", "$")])


def task_hardware(values: Mapping[str, Any]) -> str | None:
    """What a task asks for on all nodes: ``h100-16``; ``None`` where it does not say it."""
    chips, nodes = accelerators(values), digits(str(values.get("num_nodes", 1)))
    return f"{chips[0].casefold()}-{chips[1] * nodes}" if chips and nodes else None


def accelerators(values: Mapping[str, Any]) -> tuple[str, int] | None:
    """Accelerators of a node: ``H100:8``, or ``{H100: 8}``."""
    resources = values.get("resources")
    said = resources.get("accelerators") if isinstance(resources, dict) else None
    if isinstance(said, dict) and len(said) == 1:
        said = ":".join(map(str, next(iter(said.items()))))
    found = _ACCELERATOR.fullmatch(said) if isinstance(said, str) else None
    return (found["chip"], int(found["count"] or 1)) if found else None


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
