"""What functions of a file of torchtitan's configurations return, as far as it is literal: parsed, never run."""

import ast
import copy
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError

CLASS, ARGUMENTS = "()", "*"
"""Of a call: the name that is called, without ``.Config``, and its arguments without a name."""
_DEEPEST = 8


class NotLiteral:
    """A value that only a run can tell."""


UNKNOWN = NotLiteral()


def configurations(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions that return a ``Trainer.Config``."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if node.returns and ast.unparse(node.returns) == "Trainer.Config"}


def returned(name: str, functions: Mapping[str, ast.FunctionDef], deeper: int = _DEEPEST) -> dict[str, Any]:
    """The configuration that a function returns: calls as mappings of their arguments, changes laid over them.

    Raises:
        ConfigError: it returns something else, or functions call each other without end.
    """
    names: dict[str, Any] = {}
    for statement in functions[name].body if deeper else ():
        match statement:
            case ast.Assign(targets=[target]):
                _assign(target, _value(statement.value, names, functions, deeper), names)
            case ast.Return(value=ast.expr() as value):
                found = _value(value, names, functions, deeper)
                if isinstance(found, dict):
                    return found
            case _:
                pass
    raise ConfigError(f"{name} returns no configuration that can be read without running it")


def _assign(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    """``name = …`` or ``config.training.steps = …``; other targets are left."""
    path: list[str] = []
    while isinstance(target, ast.Attribute):
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
    if isinstance(node, dict):
        node[path[-1]] = value


def _value(node: ast.expr, names: Mapping[str, Any], functions: Mapping[str, ast.FunctionDef], deeper: int) -> Any:
    def inner(part: ast.expr) -> Any:
        return _value(part, names, functions, deeper)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id, UNKNOWN)
        case ast.Attribute():
            owner = inner(node.value)
            return owner.get(node.attr, UNKNOWN) if isinstance(owner, dict) else UNKNOWN
        case ast.List() | ast.Tuple():
            return [inner(item) for item in node.elts]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.BinOp(op=ast.Mult() | ast.Add() | ast.FloorDiv()):
            return _calculated(node.op, inner(node.left), inner(node.right))
        case ast.Call():
            return _called(node, names, functions, deeper)
    return UNKNOWN


def _called(node: ast.Call, names: Mapping[str, Any], functions: Mapping[str, ast.FunctionDef], deeper: int) -> Any:
    called = ast.unparse(node.func)
    if called in functions and deeper:
        return copy.deepcopy(returned(called, functions, deeper - 1))
    arguments = {word.arg: _value(word.value, names, functions, deeper) for word in node.keywords if word.arg}
    given = [_value(argument, names, functions, deeper) for argument in node.args]
    return {CLASS: called.removesuffix(".Config"), ARGUMENTS: given, **arguments}


def _calculated(operator: ast.operator, left: Any, right: Any) -> Any:
    if type(left) is not int or type(right) is not int or abs(left) > 2**40 or abs(right) > 2**40:
        return UNKNOWN
    if isinstance(operator, ast.FloorDiv):
        return left // right if right else UNKNOWN
    return left * right if isinstance(operator, ast.Mult) else left + right
