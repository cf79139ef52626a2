"""What a Python program makes, as mappings of what it sets: kept without running it."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.text import plain

CLASS, ARGUMENTS, CHANGED, OWNER = "()", "*", "!", "."
"""Of a call: the name that is called, without ``.Config``, its arguments without a name, the function of another file
that was handed what it made, and may have changed it, and for a method what made its object."""


class NotLiteral:
    """A value that only a run can tell; there is one."""

    def __deepcopy__(self, _: object) -> "NotLiteral":
        return self


UNKNOWN = NotLiteral()


def assign(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    """``name = …``, ``first, second = …``, ``config.training.steps = …`` or ``config["training"] = …``; other targets
    are left."""
    if isinstance(target, ast.Tuple | ast.List):
        values = value if isinstance(value, list) and len(value) == len(target.elts) else _each(value, len(target.elts))
        for inner, part in zip(target.elts, values, strict=True):
            assign(inner, part, names)
        return
    path: list[str] = []
    while isinstance(target, ast.Attribute | ast.Subscript):
        if isinstance(target, ast.Subscript):
            if not (isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)):
                return
            path.insert(0, target.slice.value)
        else:
            path.insert(0, target.attr)
        target = target.value
    if not isinstance(target, ast.Name):
        return
    if not path:
        names[target.id] = value
        return
    node = names.get(target.id)
    for key in path[:-1]:
        node = node.setdefault(key, {}) if isinstance(node, dict) else None
    if isinstance(node, dict) and not _holds(value, node):
        node[path[-1]] = value


def _each(value: Any, count: int) -> list[Any]:
    """What a call of another file returns several of: each by its place, ``made_both()[0]``."""
    if isinstance(value, dict) and isinstance(made_by := value.get(CLASS), str):
        return [{CLASS: f"{made_by}[{place}]", ARGUMENTS: []} for place in range(count)]
    return [UNKNOWN] * count


def _holds(value: Any, node: Mapping[str, Any]) -> bool:
    """Whether a mapping is within a value, which would then hold itself."""
    return any(part is node for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """A value and all that is within it, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop(0)
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def handed_over(value: Any) -> tuple[str, ...]:
    """Notes on functions of other files that a configuration, or a part of it, is handed to."""
    notes = []
    for part in _parts(value):
        if isinstance(part, dict) and (names := part.get(CHANGED)):
            are = "are" if ", " in names else "is"
            what = f"{plain(names, 120)} may change the configuration, and {are} not in the file"
            notes.append(f"{what}: what changes is not known")
    return tuple(dict.fromkeys(notes))
