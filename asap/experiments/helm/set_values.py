"""Values that a command of Helm sets: ``--set workload.gpus=64,workload.arguments[0]=trainer.max_steps=100``
(helm.sh/docs/intro/using_helm, "The Format and Limitations of --set")."""

import re
from typing import Any

from asap.core.errors import UsageError
from asap.core.text import plain
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.shell import has_substitution

_PAIRS = re.compile(r"(?:\\.|\{[^{}]*\}|[^,\\{])+")
_PARTS = re.compile(r"\[(\d{1,3})\]|((?:\\.|[^.\[\]\\])+)")
_TYPED = re.compile(r"true|false|null|-?\d{1,18}", re.ASCII)


def with_set(values: dict[str, Any], text: str, where: str) -> dict[str, Any]:
    """Values with those of one ``--set`` on top.

    Raises:
        UsageError: it is not ``key=value``, or its key is no path.
    """
    for pair in _PAIRS.findall(text):
        key, separator, value = pair.partition("=")
        if not separator:
            raise UsageError("is not key=value", where=f"{where}: {plain(pair, 60)}")
        values = with_value(values, key, _value(value), where)
    return values


def with_value(values: dict[str, Any], key: str, value: Any, where: str) -> dict[str, Any]:
    """Values with one more, by the path of its key; raises like :func:`with_set`."""
    path = [int(found[1]) if found[1] else re.sub(r"\\(.)", r"\1", found[2]) for found in _PARTS.finditer(key)]
    if not path or isinstance(path[0], int):
        raise UsageError("is no path of a value", where=f"{where}: {plain(key, 60)}")
    found: dict[str, Any] = _laid(values, path, value)
    return found


def _laid(node: Any, path: list[int | str], value: Any) -> Any:
    """A node with a value at a path below it; what lies there of another kind is replaced."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(first, str):
        below = dict(node) if isinstance(node, dict) else {}
        return below | {first: _laid(below.get(first), rest, value)}
    items = list(node) if isinstance(node, list) else []
    items += [None] * (first + 1 - len(items))
    items[first] = _laid(items[first], rest, value)
    return items


def _value(text: str) -> Any:
    """Numbers, truth values and lists are typed; what only a run can tell is none; all else is text."""
    if has_substitution(text):
        return None
    if text.startswith("{") and text.endswith("}"):
        return [_value(item) for item in text[1:-1].split(",")]
    return parse_yaml(text, "--set")[0] if _TYPED.fullmatch(text) else re.sub(r"\\(.)", r"\1", text)
