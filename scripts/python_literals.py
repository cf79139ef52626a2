"""Values of a Python file as far as they are literal, calls of classes as what they are given: parsed, never run."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asap.core.errors import ConfigError

CLASS, ARGUMENTS = "()", "*"
"""Of a call: the name that is called, without ``.Config``, and its arguments without a name."""
_DEEPEST_TREE = 150
_LARGEST, _LONGEST = 2**40, 60_000
_MOST_F_STRINGS = 64
_IN_BRACES = re.compile(r"\{[^{}]+\}")
_TENSORS = "torch"
"""The module whose attributes are types of numbers: ``torch.bfloat16``."""


class NotLiteral:
    """A value that only a run can tell; there is one."""


UNKNOWN = NotLiteral()
Lookup = Callable[[str, str], Any]
"""The value of a name of another module; ``UNKNOWN`` where it has none."""


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


def names_of(tree: ast.Module, lookup: Lookup | None = None) -> dict[str, Any]:
    """Names of a file that are set once in all of it, and are no parameters, by their value where that is literal."""
    nodes = list(ast.walk(tree))
    said = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    said += [node.arg for node in nodes if isinstance(node, ast.arg)]
    once = {name for name, times in Counter(said).items() if times == 1}
    values: dict[str, Any] = {}
    for node in sorted((node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign)), key=_line):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name in once and is_literal(found := value_of(value, values, lookup)):
                values[name] = found
            case _:
                pass
    return values


def _line(node: ast.stmt) -> int:
    return node.lineno


def value_of(node: ast.expr, names: Mapping[str, Any], lookup: Lookup | None = None) -> Any:
    """The value of constants, collections, sums and names that have one, and of a call what it is given, under
    ``CLASS`` and ``ARGUMENTS`` beside its arguments by name; ``UNKNOWN`` for any other."""

    def inner(part: ast.expr) -> Any:
        return value_of(part, names, lookup)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id, UNKNOWN)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name if module == _TENSORS else lookup(module, name) if lookup else UNKNOWN
        case ast.List() | ast.Tuple():
            return [inner(item) for item in node.elts]
        case ast.Dict():
            return _dictionary(zip(node.keys, node.values, strict=True), inner)
        case ast.BinOp(op=ast.Add() | ast.Mult() as sign):
            return _calculated(sign, inner(node.left), inner(node.right))
        case ast.UnaryOp(op=ast.USub()):
            value = inner(node.operand)
            return -value if type(value) in (int, float) else UNKNOWN
        case ast.JoinedStr():
            parts = [inner(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
            return "".join(map(str, parts)) if all(map(is_literal, parts)) else UNKNOWN
        case ast.Call():
            called = ast.unparse(node.func).removesuffix(".Config")
            words = [(ast.Constant(word.arg) if word.arg else None, word.value) for word in node.keywords]
            given = _dictionary(words, inner)
            if given is UNKNOWN or (called == "dict" and not node.args):
                return given
            return {CLASS: called, ARGUMENTS: [*map(inner, node.args)], **given}
    return UNKNOWN


def _dictionary(items: Iterable[tuple[ast.expr | None, ast.expr]], inner: Callable[[ast.expr], Any]) -> Any:
    """A mapping, with others that are laid out in it; ``UNKNOWN`` where only a run can tell a key."""
    found: dict[str, Any] = {}
    for key, node in items:
        said, value = None if key is None else inner(key), inner(node)
        if key is None and isinstance(value, dict) and CLASS not in value:
            found |= value
        elif isinstance(said, str):
            found[said] = value
        else:
            return UNKNOWN
    return found


def _calculated(sign: ast.operator, left: Any, right: Any) -> Any:
    """A sum of two numbers, texts or lists, or a product of numbers, within bounds."""
    numbers = type(left) in (int, float) and type(right) in (int, float)
    if numbers and abs(left) < _LARGEST and abs(right) < _LARGEST:
        return left + right if isinstance(sign, ast.Add) else left * right
    joined = isinstance(sign, ast.Add) and type(left) is type(right) and isinstance(left, str | list)
    return left + right if joined and len(left) + len(right) < _LONGEST else UNKNOWN


def is_literal(value: Any) -> bool:
    """Whether a value is known in all its parts, and holds nothing that a call makes."""
    if isinstance(value, dict):
        return CLASS not in value and all(map(is_literal, value.values()))
    return all(map(is_literal, value)) if isinstance(value, list) else value is not UNKNOWN
