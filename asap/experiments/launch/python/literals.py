"""Values of a Python file as far as they are literal: parsed, never run."""

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from asap.core.errors import ConfigError

_DEEPEST = 64
_DEEPEST_TREE = 150
_MOST_F_STRINGS = 64
_IN_BRACES = re.compile(r"\{[^{}]+\}")


class NotLiteralError(ValueError):
    """An expression whose value only a run can tell."""


Lookup = Callable[[str, str], Any]
"""The value of a name of another module; raises :class:`NotLiteralError`."""


def parse_python(text: str, where: str) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        ConfigError: it is no Python.
    """
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        raise ConfigError(f"is not Python: {error.msg}", where=f"{where}:{error.lineno or 1}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConfigError("cannot be read as Python", where=where) from error
    if _is_deep(tree):
        raise ConfigError("is nested too deeply to be read", where=where)
    return tree


def _is_deep(tree: ast.Module) -> bool:
    """Whether parts of a tree lie within each other more often than in what people write."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST_TREE):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _parsed(text: str) -> ast.Module:
    """The syntax tree; what stands in braces of an f-string that only a later Python takes is unknown in it."""
    lines = text.splitlines()
    for _ in range(_MOST_F_STRINGS):
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            place = (error.lineno or 0) - 1
            if not error.msg.startswith("f-string") or not 0 <= place < len(lines):
                raise
            changed = _IN_BRACES.sub("{_}", lines[place])
            if changed == lines[place]:
                raise
            lines[place] = changed
    return ast.parse("\n".join(lines))


def module_values(tree: ast.Module, lookup: Lookup) -> dict[str, Any]:
    """Names of the top level that are given a literal value."""
    values: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                try:
                    values[target.id] = evaluate(statement.value, values, lookup)
                except NotLiteralError:
                    values.pop(target.id, None)
    return values


def module_environment(tree: ast.Module, names: Mapping[str, Any], lookup: Lookup) -> dict[str, str]:
    """Variables that the top level sets to a literal value: ``os.environ["XLA_FLAGS"] = "…"``; the last one counts."""
    found: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name)))],
                value=value,
            ):
                try:
                    found[name] = str(evaluate(value, names, lookup))
                except NotLiteralError:
                    found.pop(name, None)
            case _:
                pass
    return found


def evaluate(node: ast.expr, names: Mapping[str, Any], lookup: Lookup, depth: int = 0) -> Any:
    """The value of an expression of constants, collections, sums of text, and names that have one.

    Raises:
        NotLiteralError: it is something else.
    """
    if depth > _DEEPEST:
        raise NotLiteralError("nested too deeply")

    def inner(part: ast.expr) -> Any:
        return evaluate(part, names, lookup, depth + 1)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return lookup(module, name)
        case ast.List() | ast.Tuple():
            return [inner(item) for item in node.elts]
        case ast.Dict():
            return _dictionary(node, inner)
        case ast.BinOp(op=ast.Add()):
            return _sum(inner(node.left), inner(node.right))
        case ast.UnaryOp(op=ast.USub()):
            value = inner(node.operand)
            return -value if isinstance(value, int | float) else _refuse()
        case ast.JoinedStr():
            return "".join(_formatted(part, inner) for part in node.values)
    return _refuse()


def _dictionary(node: ast.Dict, inner: Callable[[ast.expr], Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            merged = inner(value)
            found |= merged if isinstance(merged, dict) else _refuse()
        else:
            found[str(inner(key))] = inner(value)
    return found


def _sum(left: Any, right: Any) -> Any:
    return left + right if type(left) is type(right) and isinstance(left, str | list | int | float) else _refuse()


def _formatted(part: ast.expr, inner: Callable[[ast.expr], Any]) -> str:
    return str(inner(part.value if isinstance(part, ast.FormattedValue) else part))


def _refuse() -> Any:
    raise NotLiteralError("not a literal")
