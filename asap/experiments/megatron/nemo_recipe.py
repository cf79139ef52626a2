"""The recipe that a Python program of NeMo 2 runs, as far as it is literal: parsed, never run.

``run.run(recipe)``, ``experiment.add(recipe)`` and ``run.cli.main(llm.pretrain, default_factory=recipe)`` of NeMo-Run
(``nemo/collections/llm/recipes``), and ``llm.pretrain(model=…, data=…, trainer=…)`` without a recipe.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asap.experiments.launch.literals import parse_python
from asap.experiments.launch.python_values import (
    CLASS,
    UNKNOWN,
    Functions,
    assign,
    bound,
    follow,
    functions_of,
    value_of,
)

_NAMED = re.compile(r"\b(?:pretrain|finetune)_recipe\b|\bllm\.(?:pretrain|finetune)\b")
_IMPORTS = re.compile(r"^\s*(?:from|import) nemo(?:_run|_launcher)?\b", re.MULTILINE)
RECIPE = re.compile(r"(?:^|\.)(?P<model>\w+)\.(?P<task>pretrain|finetune)_recipe$")
DIRECT = re.compile(r"(?:^|\.)llm\.(?P<task>pretrain|finetune)$")
_RUNS = re.compile(r"^(?:run\.run|run\.cli\.main|(?:llm\.)?(?:pretrain|finetune)|\w+\.add)$")
_FACTORY = "default_factory"
_RECIPES = re.compile(r"\bllm\.recipes\.(\w+)$")


@dataclass(frozen=True)
class Recipe:
    """What a program runs.

    Args:
        said: settings by section, as the program writes them; ``UNKNOWN`` where only a run can tell.
        looped: whether it is the first round of a loop.
    """

    said: dict[str, Any]
    looped: bool

    @property
    def named(self) -> re.Match[str] | None:
        """The recipe by its module; ``None`` where the program says all itself."""
        return RECIPE.search(str(self.said.get(CLASS)))


def is_nemo_program(text: str) -> bool:
    """Whether a program runs NeMo 2."""
    return _IMPORTS.search(text) is not None and _NAMED.search(text) is not None


def find_recipe(text: str, where: str) -> Recipe | None:
    """The first recipe that a program runs; ``None`` where there is none that can be told without running it.

    Raises:
        ConfigError: it is no Python.
    """
    tree = parse_python(text, where)
    functions = functions_of(tree)
    modules = _modules(tree)
    for path in _paths(tree):
        names: dict[str, Any] = {}
        looped = _follow_to(path, names, functions, tree)
        call = path[-1]
        assert isinstance(call, ast.Call)
        for candidate in _candidates(call, names, functions):
            named = _with_module(candidate, modules)
            if RECIPE.search(str(named.get(CLASS))) or DIRECT.search(str(named.get(CLASS))):
                return Recipe(named, looped)
    return None


def _candidates(call: ast.Call, names: dict[str, Any], functions: Functions) -> Iterator[dict[str, Any]]:
    """What a call may run: itself, its arguments, or what a function that it names returns."""
    factories = [word.value for word in call.keywords if word.arg == _FACTORY]
    made = [ast.Call(node, [], []) for node in factories if isinstance(node, ast.Name)]
    for node in (call, *call.args, *made):
        if isinstance(found := value_of(node, names, functions), dict):
            yield found


def _with_module(value: dict[str, Any], modules: dict[str, str]) -> dict[str, Any]:
    """With the module of a function that is imported by its own name: ``from …llama3_8b import pretrain_recipe``."""
    called = str(value.get(CLASS))
    return {**value, CLASS: f"{modules[called]}.{called}"} if called in modules else value


def _modules(tree: ast.Module) -> dict[str, str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    found = ((node, _RECIPES.search(str(node.module))) for node in imports)
    return {alias.asname or alias.name: module[1] for node, module in found if module for alias in node.names}


def _paths(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """The way from the file down to each call that runs something."""

    def below(node: ast.AST, way: list[ast.AST]) -> Iterator[list[ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and _RUNS.search(ast.unparse(child.func)):
                yield [*way, child]
            yield from below(child, [*way, child])

    yield from below(tree, [])


def _follow_to(path: list[ast.AST], names: dict[str, Any], functions: Functions, tree: ast.Module) -> bool:
    """Take all that is set before a call into ``names``; whether a loop is on the way, of which it is the first
    round."""
    looped = False
    block: list[ast.stmt] = tree.body
    for node in path:
        if not isinstance(node, ast.stmt):
            continue
        for statement in block:
            if statement is node:
                break
            follow(statement, names, functions)
        block = getattr(node, "body", [])
        if isinstance(node, ast.FunctionDef):
            names |= bound(node, *_given(node, tree, names, functions), functions)
        elif isinstance(node, ast.For):
            looped = True
            _first_round(node, names, functions)
    return looped


def _given(
    function: ast.FunctionDef, tree: ast.Module, names: dict[str, Any], functions: Functions
) -> tuple[list[Any], dict[str, Any]]:
    """What the file calls a function with."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    call = next((node for node in calls if ast.unparse(node.func) == function.name), None)
    if call is None:
        return [], {}
    words = {word.arg: value_of(word.value, names, functions) for word in call.keywords if word.arg}
    return [value_of(argument, names, functions) for argument in call.args], words


def _first_round(loop: ast.For, names: dict[str, Any], functions: Functions) -> None:
    over = value_of(loop.iter, names, functions)
    first = over[0] if isinstance(over, list) and over else UNKNOWN
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple | ast.List) else [loop.target]
    values = first if isinstance(first, list) and len(targets) > 1 else [first]
    for place, target in enumerate(targets):
        assign(target, values[place] if place < len(values) and values[0] is not UNKNOWN else UNKNOWN, names)
