"""What functions of a Python program return, as far as it is literal: parsed, never run."""

import ast
import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.launch.python.conditions import truth
from asap.experiments.launch.python.defaults import OTHER, attribute_of, default_of
from asap.experiments.launch.python.objects import ARGUMENTS, CHANGED, CLASS, OWNER, UNKNOWN, assign
from asap.experiments.launch.python.operations import calculated, elements, grow, grows, of_text

_DEEPEST, _MOST_CALLS, _LONGEST_TEXT = 8, 4_000, 4_000
_REPLACE = ("replace", "dataclasses.replace")
_PARTIAL = ("partial", "functools.partial")
_WRAPPERS = ("run.Config", "run.Partial")
"""Of NeMo-Run: what they make is an object of the class that is their first argument."""
_ONLY_LOOK = ("print", "pprint", "repr", "str", "len", "isinstance", "type", "vars", "dir", "assert_")
_LITERAL = (str, int, float, bool)
_TENSORS = "torch"
"""The module whose attributes are types of numbers: ``torch.bfloat16``."""
_LOGGERS = ("log", "logging", "logger", "warnings", "console")


class Functions(dict[str, ast.FunctionDef]):
    """Functions of a file by name, and the constants that they see."""

    def __init__(self, functions: Iterable[ast.FunctionDef] = ()) -> None:
        super().__init__({function.name: function for function in functions})
        self.constants: dict[str, Any] = {}
        self.calls_left = _MOST_CALLS
        """How many calls of them are still followed."""
        self.taken: set[str] = set()
        """Defaults of the environment and the command line that were taken."""


def functions_of(tree: ast.Module) -> Functions:
    """Functions of a file by name, with the constants of its top level: names that are set once."""
    found = Functions(node for node in tree.body if isinstance(node, ast.FunctionDef))
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    none = Functions()
    none.taken = found.taken
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if names.count(name) == 1:
                if isinstance(constant := value_of(value, found.constants, none), _LITERAL):
                    found.constants[name] = constant
            case _:
                pass
    return found


def returned(
    name: str, functions: Functions, given: Mapping[str, Any] | None = None, deeper: int = _DEEPEST
) -> dict[str, Any]:
    """The configuration that a function returns: calls as mappings of their arguments, changes laid over them.

    Args:
        name: of the function.
        functions: those of its file.
        given: its arguments by name; without them it has its defaults.
        deeper: how many functions may call each other.

    Raises:
        ConfigError: it returns something else, or functions call each other without end.
    """
    known = bound(functions[name], [], {}, functions) if given is None else given
    names: dict[str, Any] = {**functions.constants, **known}
    found = _run(functions[name].body, names, functions, deeper) if deeper else None
    if isinstance(found, dict):
        return found
    raise ConfigError(f"{name} returns no configuration that can be read without running it")


def _run(body: list[ast.stmt], names: dict[str, Any], functions: Functions, deeper: int) -> Any:
    """What statements return: ``None`` where they return nothing, ``UNKNOWN`` where only a run can tell."""
    for statement in body:
        match statement:
            case ast.Return(value=value):
                return UNKNOWN if value is None else value_of(value, names, functions, deeper)
            case ast.If() if (branch := _branch(statement, names, functions, deeper)) is not None:
                found = _run(branch, names, functions, deeper)
            case ast.With() | ast.Try():
                found = _run(statement.body, names, functions, deeper)
                _leave_open_after(statement, names, functions)
            case _:
                follow(statement, names, functions, deeper)
                found = UNKNOWN if _returns(statement) else None
        if found is not None:
            return found
    return None


def _branch(node: ast.If, names: Mapping[str, Any], functions: Functions, deeper: int) -> list[ast.stmt] | None:
    """The branch that is taken; ``None`` where only a run can tell."""
    held = truth(node.test, lambda part: value_of(part, names, functions, deeper))
    return None if held is None else node.body if held else node.orelse


def _returns(node: ast.AST) -> bool:
    """Whether a statement may return from the function that it is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    inner = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt | ast.excepthandler))
    return isinstance(node, ast.Return) or any(map(_returns, inner))


def follow(statement: ast.stmt, names: dict[str, Any], functions: Functions, deeper: int = _DEEPEST) -> None:
    """Take what a statement sets into ``names``; what hangs on a loop, or on what only a run can tell, is unknown
    after it."""
    match statement:
        case ast.If() if (branch := _branch(statement, names, functions, deeper)) is not None:
            for inner in branch:
                follow(inner, names, functions, deeper)
        case ast.With() | ast.Try():
            for inner in statement.body:
                follow(inner, names, functions, deeper)
            _leave_open_after(statement, names, functions)
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target, value=ast.expr()):
            assert statement.value is not None
            assign(target, value_of(statement.value, names, functions, deeper), names)
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() as op):
            names[name] = calculated(op, names.get(name), value_of(statement.value, names, functions, deeper))
        case ast.Expr(value=ast.Call() as call):
            _hand_over(call, names, functions, deeper)
        case ast.FunctionDef() | ast.ClassDef():
            pass
        case _:
            _leave_open(statement, names, functions)


def _leave_open_after(statement: ast.With | ast.Try, names: dict[str, Any], functions: Functions) -> None:
    """Take what runs only on an error, or only without one, as unknown."""
    if isinstance(statement, ast.Try):
        for inner in (*statement.handlers, *statement.orelse):
            _leave_open(inner, names, functions)


def _hand_over(call: ast.Call, names: dict[str, Any], functions: Functions, deeper: int) -> None:
    """A function that is called for what it changes: followed where it is in the file, else named in what it is
    handed."""
    called = ast.unparse(call.func)
    if called.endswith(".add_argument"):
        value_of(call, names, functions, deeper)
    elif grows(call) and isinstance(call.func, ast.Attribute):
        added = value_of(call.args[0], names, functions, deeper) if deeper else UNKNOWN
        grow(value_of(call.func.value, names, functions, deeper), call, added)
    elif called in functions and deeper and functions.calls_left:
        functions.calls_left -= 1
        function = functions[called]
        given = [value_of(argument, names, functions, deeper) for argument in call.args]
        words = _named(call.keywords, names, functions, deeper)
        inner = functions.constants | bound(function, given, words, functions, deeper - 1)
        _run(function.body, inner, functions, deeper - 1)
    elif called not in _ONLY_LOOK and called.partition(".")[0] not in _LOGGERS:
        for argument in (*call.args, *(word.value for word in call.keywords)):
            named = isinstance(argument, ast.Name | ast.Attribute)
            if named and isinstance(found := value_of(argument, names, functions, 0), dict):
                found[CHANGED] = ", ".join(dict.fromkeys([*found.get(CHANGED, called).split(", "), called]))


def _leave_open(statement: ast.AST, names: dict[str, Any], functions: Functions) -> None:
    """Take what a condition or a loop may set as unknown."""
    for node in ast.walk(statement):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            assign(target, UNKNOWN, names)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _hand_over(node.value, names, functions, 0)


def value_of(node: ast.expr, names: Mapping[str, Any], functions: Functions, deeper: int = _DEEPEST) -> Any:
    """The value of an expression; ``UNKNOWN`` where only a run can tell it."""

    def inner(part: ast.expr) -> Any:
        return value_of(part, names, functions, deeper)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names.get(node.id, UNKNOWN)
        case ast.Attribute(value=ast.Name(id=module), attr=kind) if module == _TENSORS and module not in names:
            return kind
        case ast.Attribute() | ast.Subscript(slice=ast.Constant(value=str())):
            owner = inner(node.value)
            if isinstance(node, ast.Subscript):
                assert isinstance(node.slice, ast.Constant)
                return owner.get(node.slice.value, UNKNOWN) if isinstance(owner, dict) else UNKNOWN
            return attribute_of(owner, node.attr, functions.taken)
        case ast.List() | ast.Tuple():
            return elements(node.elts, inner)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.BinOp(op=ast.Mult() | ast.Add() | ast.FloorDiv()):
            return calculated(node.op, inner(node.left), inner(node.right))
        case ast.Call():
            return _called(node, names, functions, deeper)
        case ast.Dict(keys=keys, values=values):
            return _mapping(list(zip(keys, values, strict=True)), inner)
        case ast.JoinedStr(values=parts):
            texts = [inner(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
            text = "".join(map(str, texts)) if all(isinstance(text, _LITERAL) for text in texts) else UNKNOWN
            return UNKNOWN if isinstance(text, str) and len(text) > _LONGEST_TEXT else text
        case ast.IfExp(test=test, body=body, orelse=other):
            held = truth(test, inner)
            return UNKNOWN if held is None else inner(body if held else other)
        case ast.BoolOp(op=ast.Or(), values=[first, second]):
            held = truth(first, inner)
            return UNKNOWN if held is None else inner(first if held else second)
    return UNKNOWN


def _mapping(items: list[tuple[ast.expr | None, ast.expr]], inner: Callable[[ast.expr], Any]) -> Any:
    """A mapping of literal keys, also with others laid out in it; ``UNKNOWN`` where a key is not said."""
    found: dict[str, Any] = {}
    for key, node in items:
        value = inner(node)
        if key is None and isinstance(value, dict):
            found |= value
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = value
        else:
            return UNKNOWN
    return found


def _named(words: list[ast.keyword], names: Mapping[str, Any], functions: Functions, deeper: int) -> dict[str, Any]:
    """Arguments with a name, and those of a mapping; one that only a run can tell may be any."""
    found: dict[str, Any] = {}
    for word in words:
        value = value_of(word.value, names, functions, deeper)
        if word.arg:
            found[word.arg] = value
        elif isinstance(value, dict):
            found |= value
        else:
            found[CHANGED] = f"**{ast.unparse(word.value)}"
    return found


def _called(node: ast.Call, names: Mapping[str, Any], functions: Functions, deeper: int) -> Any:
    function, positional, keywords = node.func, node.args, node.keywords
    if isinstance(function, ast.Call) and ast.unparse(function.func) in _PARTIAL and function.args:
        positional, keywords = [*function.args[1:], *positional], [*function.keywords, *keywords]
        function = function.args[0]
    called = ast.unparse(function)
    if called in _WRAPPERS and positional:
        called, positional = ast.unparse(positional[0]), positional[1:]
    arguments = _named(keywords, names, functions, deeper)
    given = [value_of(argument, names, functions, deeper) for argument in positional]
    if called in functions and deeper and functions.calls_left:
        functions.calls_left -= 1
        return copy.deepcopy(_returned_by(functions[called], given, arguments, functions, deeper - 1))
    if called in _REPLACE and len(given) == 1:
        return {**given[0], **arguments} if isinstance(given[0], dict) else UNKNOWN
    owner = value_of(function.value, names, functions, deeper) if isinstance(function, ast.Attribute) else UNKNOWN
    if (default := default_of(node, given, arguments, owner, functions.taken)) is not OTHER:
        return default
    if (text := of_text(called, owner, given)) is not OTHER:
        return text
    made = {CLASS: called.removesuffix(".Config"), ARGUMENTS: given, **arguments}
    return {**made, OWNER: owner} if isinstance(owner, dict) else made


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
    found = {name: value_of(value, functions.constants, functions, deeper) for name, value in defaults}
    own = {*places, *(argument.arg for argument in more)}
    if CHANGED in arguments:
        found = dict.fromkeys(own, UNKNOWN)
    found |= dict(zip(places, given, strict=False))
    if said.kwarg is None:
        return found | {name: value for name, value in arguments.items() if name != CHANGED}
    rest = {name: value for name, value in arguments.items() if name not in own}
    return found | {name: value for name, value in arguments.items() if name in own} | {said.kwarg.arg: rest}
