"""What functions of a file of torchtitan's configurations return, as far as it is literal: parsed, never run."""

import ast
import copy
import re
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError

CLASS, ARGUMENTS = "()", "*"
"""Of a call: the name that is called, without ``.Config``, and its arguments without a name."""
_DEEPEST = 8
_TRAINER = re.compile(r"\w*Trainer\.?Config")
_REPLACE = ("replace", "dataclasses.replace")


class NotLiteral:
    """A value that only a run can tell."""


UNKNOWN = NotLiteral()


def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions of a file by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def configurations(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions that return a ``Trainer.Config``, also one of another trainer."""
    found = functions_of(tree).items()
    return {name: node for name, node in found if node.returns and _TRAINER.fullmatch(ast.unparse(node.returns))}


def returned(
    name: str,
    functions: Mapping[str, ast.FunctionDef],
    given: Mapping[str, Any] | None = None,
    deeper: int = _DEEPEST,
) -> dict[str, Any]:
    """The configuration that a function returns: calls as mappings of their arguments, changes laid over them.

    Args:
        name: of the function.
        functions: those of its file.
        given: its arguments by name, where they are known.
        deeper: how many functions may call each other.

    Raises:
        ConfigError: it returns something else, or functions call each other without end.
    """
    names: dict[str, Any] = dict(given or {})
    for statement in functions[name].body if deeper else ():
        match statement:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target, value=ast.expr()):
                assert statement.value is not None
                _assign(target, _value(statement.value, names, functions, deeper), names)
            case ast.Return(value=ast.expr() as value):
                found = _value(value, names, functions, deeper)
                if isinstance(found, dict):
                    return found
            case ast.FunctionDef() | ast.ClassDef():
                pass
            case _:
                _leave_open(statement, names)
    raise ConfigError(f"{name} returns no configuration that can be read without running it")


def _leave_open(statement: ast.stmt, names: dict[str, Any]) -> None:
    """Take what a condition or a loop may set as unknown."""
    for node in ast.walk(statement):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            _assign(target, UNKNOWN, names)


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
    arguments = {word.arg: _value(word.value, names, functions, deeper) for word in node.keywords if word.arg}
    given = [_value(argument, names, functions, deeper) for argument in node.args]
    if called in functions and deeper:
        return copy.deepcopy(_returned_by(functions[called], given, arguments, functions, deeper - 1))
    if called in _REPLACE and len(given) == 1:
        return {**given[0], **arguments} if isinstance(given[0], dict) else UNKNOWN
    return {CLASS: called.removesuffix(".Config"), ARGUMENTS: given, **arguments}


def _returned_by(
    function: ast.FunctionDef,
    given: list[Any],
    arguments: Mapping[str, Any],
    functions: Mapping[str, ast.FunctionDef],
    deeper: int,
) -> Any:
    """What a function of the file returns for its arguments; ``UNKNOWN`` where it is no mapping of settings."""
    said, more = function.args, function.args.kwonlyargs
    places = [argument.arg for argument in said.posonlyargs + said.args]
    late = zip(reversed(places), reversed(said.defaults), strict=False)
    defaults = [
        *late,
        *((argument.arg, value) for argument, value in zip(more, said.kw_defaults, strict=True) if value),
    ]
    bound = {name: _value(value, {}, functions, deeper) for name, value in defaults}
    bound |= dict(zip(places, given, strict=False)) | dict(arguments)
    try:
        return returned(function.name, functions, bound, deeper)
    except ConfigError:
        return UNKNOWN


def _calculated(operator: ast.operator, left: Any, right: Any) -> Any:
    if type(left) is not int or type(right) is not int or abs(left) > 2**40 or abs(right) > 2**40:
        return UNKNOWN
    if isinstance(operator, ast.FloorDiv):
        return left // right if right else UNKNOWN
    return left * right if isinstance(operator, ast.Mult) else left + right
