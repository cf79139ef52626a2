"""What a Python program makes, as mappings of what it sets: kept without running it."""

import ast
from collections.abc import Mapping
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
        values = value if isinstance(value, list) and len(value) == len(target.elts) else [UNKNOWN] * len(target.elts)
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


def _holds(value: Any, node: Mapping[str, Any]) -> bool:
    """Whether a mapping is within a value, which would then hold itself."""
    if value is node:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(part, node) for part in inner)


def handed_over(value: Any) -> tuple[str, ...]:
    """Notes on functions of other files that a configuration, or a part of it, is handed to."""
    if not isinstance(value, dict):
        return ()
    notes = []
    if names := value.get(CHANGED):
        are = "are" if ", " in names else "is"
        notes = [
            f"{plain(names, 120)} may change the configuration, and {are} not in the file: what changes is not known"
        ]
    return tuple(dict.fromkeys([*notes, *(note for inner in value.values() for note in handed_over(inner))]))
