"""What functions of a Python program return, as far as it is literal: parsed, never run."""

import ast
import copy
from collections.abc import Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain

CLASS, ARGUMENTS, CHANGED = "()", "*", "!"
"""Of a call: the name that is called, without ``.Config``, its arguments without a name, and the function of another
file that was handed what it made, and may have changed it."""
_DEEPEST = 8
_REPLACE = ("replace", "dataclasses.replace")
_PARTIAL = ("partial", "functools.partial")
_WRAPPERS = ("run.Config", "run.Partial")
"""Of NeMo-Run: what they make is an object of the class that is their first argument."""
_ONLY_LOOK = ("print", "pprint", "repr", "str", "len", "isinstance", "type", "vars", "dir", "assert_")
_LOGGERS = ("log", "logging", "logger", "warnings", "console")


class NotLiteral:
    """A value that only a run can tell."""


UNKNOWN = NotLiteral()
Functions = Mapping[str, ast.FunctionDef]


def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions of a file by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def returned(
    name: str, functions: Functions, given: Mapping[str, Any] | None = None, deeper: int = _DEEPEST
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
        if isinstance(statement, ast.Return) and statement.value is not None:
            found = value_of(statement.value, names, functions, deeper)
            if isinstance(found, dict):
                return found
        else:
            follow(statement, names, functions, deeper)
    raise ConfigError(f"{name} returns no configuration that can be read without running it")


def follow(statement: ast.stmt, names: dict[str, Any], functions: Functions, deeper: int = _DEEPEST) -> None:
    """Take what a statement sets into ``names``; what hangs on a condition or a loop is unknown after it."""
    match statement:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target, value=ast.expr()):
            assert statement.value is not None
            assign(target, value_of(statement.value, names, functions, deeper), names)
        case ast.Expr(value=ast.Call() as call):
            _hand_over(call, names, functions, deeper)
        case ast.FunctionDef() | ast.ClassDef():
            pass
        case _:
            _leave_open(statement, names, functions)


def assign(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
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


def _hand_over(call: ast.Call, names: dict[str, Any], functions: Functions, deeper: int) -> None:
    """A function that is called for what it changes: followed where it is in the file, else named in what it is
    handed."""
    called = ast.unparse(call.func)
    if called in functions and deeper:
        function = functions[called]
        given = [value_of(argument, names, functions, deeper) for argument in call.args]
        words = {word.arg: value_of(word.value, names, functions, deeper) for word in call.keywords if word.arg}
        inner = bound(function, given, words, functions, deeper - 1)
        for statement in function.body:
            follow(statement, inner, functions, deeper - 1)
    elif called not in _ONLY_LOOK and called.partition(".")[0] not in _LOGGERS:
        for argument in (*call.args, *(word.value for word in call.keywords)):
            named = isinstance(argument, ast.Name | ast.Attribute)
            if named and isinstance(found := value_of(argument, names, functions, 0), dict):
                found[CHANGED] = called


def _leave_open(statement: ast.stmt, names: dict[str, Any], functions: Functions) -> None:
    """Take what a condition or a loop may set as unknown."""
    for node in ast.walk(statement):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            assign(target, UNKNOWN, names)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _hand_over(node.value, names, functions, 0)


def handed_over(value: Any) -> tuple[str, ...]:
    """Notes on functions of other files that a configuration, or a part of it, is handed to."""
    if not isinstance(value, dict):
        return ()
    own = [plain(value[CHANGED], 60)] if CHANGED in value else []
    notes = [
        f"{name} may change the configuration, and is not in the file: what it changes is not known" for name in own
    ]
    return tuple(dict.fromkeys([*notes, *(note for inner in value.values() for note in handed_over(inner))]))


def value_of(node: ast.expr, names: Mapping[str, Any], functions: Functions, deeper: int = _DEEPEST) -> Any:
    """The value of an expression; ``UNKNOWN`` where only a run can tell it."""

    def inner(part: ast.expr) -> Any:
        return value_of(part, names, functions, deeper)

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


def _called(node: ast.Call, names: Mapping[str, Any], functions: Functions, deeper: int) -> Any:
    function, positional, keywords = node.func, node.args, node.keywords
    if isinstance(function, ast.Call) and ast.unparse(function.func) in _PARTIAL and function.args:
        positional, keywords = [*function.args[1:], *positional], [*function.keywords, *keywords]
        function = function.args[0]
    called = ast.unparse(function)
    if called in _WRAPPERS and positional:
        called, positional = ast.unparse(positional[0]), positional[1:]
    arguments = {word.arg: value_of(word.value, names, functions, deeper) for word in keywords if word.arg}
    given = [value_of(argument, names, functions, deeper) for argument in positional]
    if called in functions and deeper:
        return copy.deepcopy(_returned_by(functions[called], given, arguments, functions, deeper - 1))
    if called in _REPLACE and len(given) == 1:
        return {**given[0], **arguments} if isinstance(given[0], dict) else UNKNOWN
    return {CLASS: called.removesuffix(".Config"), ARGUMENTS: given, **arguments}


def _returned_by(
    function: ast.FunctionDef, given: list[Any], arguments: Mapping[str, Any], functions: Functions, deeper: int
) -> Any:
    """What a function of the file returns for its arguments; ``UNKNOWN`` where it is no mapping of settings."""
    try:
        return returned(function.name, functions, bound(function, given, arguments, functions, deeper), deeper)
    except ConfigError:
        return UNKNOWN


def bound(
    function: ast.FunctionDef, given: list[Any], arguments: Mapping[str, Any], functions: Functions, deeper: int = 1
) -> dict[str, Any]:
    """Parameters of a function by name, with what it is given or their defaults."""
    said, more = function.args, function.args.kwonlyargs
    places = [argument.arg for argument in said.posonlyargs + said.args]
    late = zip(reversed(places), reversed(said.defaults), strict=False)
    defaults = [
        *late,
        *((argument.arg, value) for argument, value in zip(more, said.kw_defaults, strict=True) if value),
    ]
    found = {name: value_of(value, {}, functions, deeper) for name, value in defaults}
    return found | dict(zip(places, given, strict=False)) | dict(arguments)


def _calculated(operator: ast.operator, left: Any, right: Any) -> Any:
    if type(left) is not int or type(right) is not int or abs(left) > 2**40 or abs(right) > 2**40:
        return UNKNOWN
    if isinstance(operator, ast.FloorDiv):
        return left // right if right else UNKNOWN
    return left * right if isinstance(operator, ast.Mult) else left + right
