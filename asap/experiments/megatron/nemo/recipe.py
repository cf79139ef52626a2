"""The recipe that a Python program of NeMo 2 runs, as far as it is literal: parsed, never run.

``run.run(recipe)``, ``experiment.add(recipe)`` and ``run.cli.main(llm.pretrain, default_factory=recipe)`` of NeMo-Run
(``nemo/collections/llm/recipes``), and ``llm.pretrain(model=…, data=…, trainer=…)`` without a recipe.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asap.experiments.launch.python.calls import Program
from asap.experiments.launch.python.literals import parse_python
from asap.experiments.launch.python.objects import CLASS
from asap.experiments.launch.python.values import Functions, value_of

_NAMED = re.compile(r"\b(?:pretrain|finetune)_recipe\b|\bllm\.(?:pretrain|finetune|train)\b")
_IMPORTS = re.compile(r"^[ \t]*(?:from|import) nemo(?:_run|_launcher)?\b", re.MULTILINE)
RECIPE = re.compile(r"(?:^|\.)(?P<model>\w+)\.(?P<task>pretrain|finetune)_recipe$")
DIRECT = re.compile(r"(?:^|\.)llm\.(?P<task>pretrain|finetune|train)$")
_RUNS = re.compile(r"^(?:run\.run|run\.cli\.main|(?:llm\.)?(?:pretrain|finetune)|llm\.train|\w+\.add)$")
_FACTORY, _RUN = "default_factory", "nemo_run"
_RECIPES = re.compile(r"\bllm\.recipes\.(\w+)$")


@dataclass(frozen=True)
class Recipe:
    """What a program runs.

    Args:
        said: settings by section, as the program writes them; ``UNKNOWN`` where only a run can tell.
        looped: whether it is the first round of a loop.
        chosen: whether only a run can tell the recipe's module, as a variable holds it.
        taken: defaults of the program's command line and environment that it takes.
    """

    said: dict[str, Any]
    looped: bool
    chosen: bool = False
    taken: frozenset[str] = frozenset()

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
    tree = _Renamed.within(parse_python(text, where))
    program, modules = Program(tree), _modules(tree)
    variables = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for site in program.sites(lambda call: _RUNS.search(ast.unparse(call.func)) is not None):
        for candidate in _candidates(site.call, site.names, program.functions):
            named = _with_module(candidate, modules)
            if RECIPE.search(str(named.get(CLASS))) or DIRECT.search(str(named.get(CLASS))):
                module = RECIPE.search(str(named.get(CLASS)))
                chosen = module is not None and module["model"] in variables
                return Recipe(named, site.looped, chosen, frozenset(program.functions.taken))
    return None


class _Renamed(ast.NodeTransformer):
    """Names of NeMo-Run as most programs have them: ``import nemo_run as nr`` is ``run``."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    @classmethod
    def within(cls, tree: ast.Module) -> ast.Module:
        """A program with the usual names."""
        imports = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
        names = frozenset(alias.asname or _RUN for alias in imports if alias.name == _RUN) - {"run"}
        return cls(names).visit(tree) if names else tree

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """The name, renamed."""
        return ast.copy_location(ast.Name("run", node.ctx), node) if node.id in self._names else node


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
