"""Sums of numbers, texts and lists in a Python program, and what methods of texts and lists make of them."""

import ast
import shlex
from collections.abc import Callable
from typing import Any

from asap.experiments.launch.python.defaults import OTHER
from asap.experiments.launch.python.objects import UNKNOWN

_LARGEST, _MOST, _LONGEST = 2**40, 2_000, 60_000
_LITERAL = (str, int, float)
_GROW = ("append", "extend")


def calculated(operator: ast.operator, left: Any, right: Any) -> Any:
    """A product, quotient or sum of whole numbers, or a sum of two texts or lists; ``UNKNOWN`` for any other."""
    if isinstance(operator, ast.Add) and type(left) is type(right) and isinstance(left, str | list):
        whole = left + right
        return whole if len(whole) <= (_LONGEST if isinstance(left, str) else _MOST) else UNKNOWN
    if type(left) is not int or type(right) is not int or abs(left) > _LARGEST or abs(right) > _LARGEST:
        return UNKNOWN
    if isinstance(operator, ast.FloorDiv):
        return left // right if right else UNKNOWN
    return left * right if isinstance(operator, ast.Mult) else left + right


def elements(nodes: list[ast.expr], value: Callable[[ast.expr], Any]) -> list[Any]:
    """Elements of a list, with those of lists that are laid out in it."""
    found: list[Any] = []
    for node in nodes:
        within = value(node.value) if isinstance(node, ast.Starred) else [value(node)]
        found += within if isinstance(within, list) and len(found) + len(within) <= _MOST else [UNKNOWN]
    return found


def of_text(called: str, owner: Any, given: list[Any]) -> Any:
    """``" ".join(words)``, ``text.split()`` or ``shlex.split(text)``; ``OTHER`` for other calls."""
    method = called.rpartition(".")[2]
    if method == "join" and (called == "shlex.join" or isinstance(owner, str)) and len(given) == 1:
        between = " " if called == "shlex.join" else owner
        return between.join(map(word, given[0])) if isinstance(given[0], list) else UNKNOWN
    if method == "split":
        text = given[0] if called == "shlex.split" and len(given) == 1 else owner if not given else None
        if isinstance(text, str):
            try:
                return shlex.split(text) if called == "shlex.split" else text.split()
            except ValueError:
                return UNKNOWN
    return OTHER


def grows(call: ast.Call) -> bool:
    """Whether a call may add to a list."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _GROW and len(call.args) == 1


def grow(owner: Any, call: ast.Call, added: Any) -> None:
    """Add to a list what a call adds, or that it is not known what."""
    if isinstance(owner, list) and isinstance(call.func, ast.Attribute):
        several = call.func.attr == "extend" and isinstance(added, list)
        more = added if several else [added]
        owner.extend(more if len(owner) + len(more) <= _MOST else [UNKNOWN])


def word(value: Any) -> str:
    """A value as a word of a command; one that only a run can tell is a variable that nothing sets."""
    return str(value) if isinstance(value, _LITERAL) else "$UNSAID"
