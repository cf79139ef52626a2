"""Patterns of the package that may take exponential time: a repetition in a repetition, with no sign between rounds.

In ``(a+)+`` what follows the inner repetition may begin as its next round does, so that each further character doubles
the ways to cut a text. In ``(a+,)+`` it cannot. Of repetitions that are bounded, possessive or atomic there is one way.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from re import _constants as names  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from fuzzing.patterns import all_patterns

UNBOUNDED = 20
"""Rounds from which a repetition counts as one."""
ALPHABET = "".join(map(chr, range(256))) + "é中\u2028"
"""What patterns are told apart by."""
ANY = frozenset(ALPHABET)
_REPEATS = (names.MAX_REPEAT, names.MIN_REPEAT)
_ZERO_WIDTH = (names.AT, names.ASSERT, names.ASSERT_NOT)
_SOURCES = Path(__file__).parents[2] / "asap"

Tree = Sequence[tuple[Any, Any]]


def is_nested(pattern: str, flags: int = 0) -> bool:
    """Whether a pattern has such repetitions."""
    tree = parser.parse(pattern, flags)
    return _any_nested(list(tree), flags | tree.state.flags, ())


def _any_nested(tree: Tree, flags: int, loops: tuple[Tree, ...], after: Tree = ()) -> bool:
    """Whether a repetition in ``tree`` is ambiguous in one of ``loops``; ``after`` is what follows in the innermost."""
    for at, (operation, argument) in enumerate(tree):
        rest = [*tree[at + 1 :], *after]
        if operation in _REPEATS:
            _, most, body = argument
            unbounded = most >= UNBOUNDED
            again = _first(list(body), flags)
            if unbounded and any(again & _first([*rest, *loop], flags) for loop in loops):
                return True
            if _any_nested(list(body), flags, (*loops, list(body)) if unbounded else loops, () if unbounded else rest):
                return True
        elif any(_any_nested(branch, flags, loops, rest) for branch in _branches(operation, argument)):
            return True
    return False


def _branches(operation: Any, argument: Any) -> list[Tree]:
    if operation is names.SUBPATTERN:
        return [list(argument[3])]
    if operation is names.BRANCH:
        return [list(one) for one in argument[1]]
    if operation in (names.ASSERT, names.ASSERT_NOT):
        return [list(argument[1])]
    return []


def _first(tree: Tree, flags: int) -> frozenset[str]:
    """Characters that a match may begin with; an empty match goes on to what follows."""
    found: frozenset[str] = frozenset()
    for operation, argument in tree:
        found |= _begins(operation, argument, flags)
        if not _may_be_empty(operation, argument):
            return found
    return found


def _begins(operation: Any, argument: Any, flags: int) -> frozenset[str]:
    if operation in _ZERO_WIDTH:
        return frozenset()
    if operation in (*_REPEATS, names.POSSESSIVE_REPEAT):
        return _first(list(argument[2]), flags)
    if operation is names.SUBPATTERN:
        return _first(list(argument[3]), flags)
    if operation is names.ATOMIC_GROUP:
        return _first(list(argument), flags)
    if operation is names.BRANCH:
        return frozenset().union(*(_first(list(one), flags) for one in argument[1]))
    if operation in (names.LITERAL, names.NOT_LITERAL, names.IN, names.ANY):
        return _characters(operation, argument, flags)
    return ANY


def _characters(operation: Any, argument: Any, flags: int) -> frozenset[str]:
    """Of the alphabet, what one element matches: asked of the machine itself."""
    one = parser.SubPattern(parser.State(), [(operation, argument)])
    one.state.flags = flags & ~(re.VERBOSE | re.DEBUG)
    compiled = re._compiler.compile(one)  # type: ignore[attr-defined]
    return frozenset(each for each in ALPHABET if compiled.fullmatch(each))


def _may_be_empty(operation: Any, argument: Any) -> bool:
    if operation in _ZERO_WIDTH:
        return True
    if operation in (*_REPEATS, names.POSSESSIVE_REPEAT):
        return argument[0] == 0 or all(_may_be_empty(*one) for one in argument[2])
    if operation is names.SUBPATTERN:
        return all(_may_be_empty(*one) for one in argument[3])
    if operation is names.BRANCH:
        return any(all(_may_be_empty(*one) for one in branch) for branch in argument[1])
    return False


def every_pattern() -> dict[tuple[str, int], str]:
    """Each pattern of the package and its flags, with a place: what modules hold, and literals in functions."""
    found = {(one.pattern, one.flags & ~re.UNICODE): places[0] for one, places in all_patterns(()).items()}
    return dict(_literals()) | found


def _literals() -> Iterator[tuple[tuple[str, int], str]]:
    for path in _SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
                first = node.args[0]
                if of_re and isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield (first.value, 0), f"{path.relative_to(_SOURCES)}:{node.lineno}"


def main() -> None:
    patterns = every_pattern()
    bad = [(place, pattern) for (pattern, flags), place in patterns.items() if is_nested(pattern, flags)]
    for place, pattern in sorted(bad):
        print(f"{place}: {pattern[:200]!r}")
    print(f"{len(bad)} of {len(patterns)} patterns repeat a repetition ambiguously")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
