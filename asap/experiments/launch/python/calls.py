"""Calls of a Python program, and what is set before each: parsed, never run."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from asap.experiments.launch.python.objects import UNKNOWN, assign
from asap.experiments.launch.python.values import Functions, bound, follow, functions_of, value_of

_MOST_SITES = 64
_DEEPEST = 4
"""How many functions may hand on to each other what a call is given."""


@dataclass
class Site:
    """A call, and what is set before it.

    Args:
        call: in the file.
        way: from the file down to it.
        names: what is set, by name.
        looped: whether a loop is on the way, of which it is the first round.
    """

    call: ast.Call
    way: list[ast.AST]
    names: dict[str, Any] = field(default_factory=dict)
    looped: bool = False


class Program:
    """A file whose calls are looked for."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions: Functions = functions_of(tree)
        self._sites = list(_sites(tree))

    def sites(self, wanted: Callable[[ast.Call], bool]) -> Iterator[Site]:
        """Calls that are wanted, in the order of the file, with what is set before them."""
        found = (site for site in self._sites if wanted(site.call))
        yield from map(self.followed, islice(found, _MOST_SITES))

    def followed(self, site: Site, deeper: int = _DEEPEST) -> Site:
        """A call with what is set before it."""
        found = Site(site.call, site.way, dict(self.functions.constants))
        block: list[ast.stmt] = self.tree.body
        for place, node in enumerate(site.way):
            if not isinstance(node, ast.stmt):
                continue
            for statement in block:
                if statement is node:
                    break
                follow(statement, found.names, self.functions)
            block = _block(node, site.way[place + 1 :])
            if isinstance(node, ast.FunctionDef):
                found.names |= self._bound(node, deeper)
            elif isinstance(node, ast.For):
                found.looped = True
                _first_round(node, found.names, self.functions)
        return found

    def _bound(self, function: ast.FunctionDef, deeper: int) -> dict[str, Any]:
        """Parameters of a function, with what the file first calls it with."""
        callers = (site for site in self._sites if ast.unparse(site.call.func) == function.name)
        caller = next((site for site in callers if function not in site.way), None) if deeper else None
        if caller is None:
            return bound(function, [], {}, self.functions)
        known = self.followed(caller, deeper - 1).names
        words = {word.arg: value_of(word.value, known, self.functions) for word in caller.call.keywords if word.arg}
        given = [value_of(argument, known, self.functions) for argument in caller.call.args]
        return bound(function, given, words, self.functions)


def _sites(tree: ast.Module) -> Iterator[Site]:
    def below(node: ast.AST, way: list[ast.AST]) -> Iterator[Site]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield Site(child, [*way, child])
            yield from below(child, [*way, child])

    yield from below(tree, [])


def _block(node: ast.stmt, rest: list[ast.AST]) -> list[ast.stmt]:
    """The statements of a statement that the next one on a way is among."""
    following = next((inner for inner in rest if isinstance(inner, ast.stmt | ast.ExceptHandler)), None)
    if isinstance(following, ast.ExceptHandler):
        return following.body
    blocks = (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if any(statement is following for statement in block)), [])


def _first_round(loop: ast.For, names: dict[str, Any], functions: Functions) -> None:
    over = value_of(loop.iter, names, functions)
    assign(loop.target, over[0] if isinstance(over, list) and over else UNKNOWN, names)
