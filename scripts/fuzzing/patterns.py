"""Patterns of the package that hostile text makes slow, found in two ways.

Measured: a pattern with a repetition inside a repetition, or one that may begin anywhere and runs to the end of the
text before it fails, takes the square of the length. Each pattern searches texts of one repeated fragment: signs that
patterns name, and every literal of its own.

Read: in ``(a+)+`` what follows the inner repetition may begin as its next round does, so that each further character
doubles the ways to cut a text. In ``(a+,)+`` it cannot. Of repetitions that are bounded, possessive or atomic there is
one way.
"""

import ast
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from re import _constants as names  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

LENGTH = 2_000
SHORTEST_S = 0.003
"""At twice the length, from which an exponent is measured: 750 ns a character."""
LARGEST_EXPONENT = 1.5
"""Of one fragment; times this short are noisy, and a square is 2."""
FRAGMENTS = (
    "-", "--", "a", "1", " ", "\n", "\t", "_", ".", "/", "=", ":", ",", "$", "{", "(", "[", "<", '"', "'", "\\", "@",
    "a ", "a_", "a.", "a=", "a: ", "--a ", "1 ", "1,", "1.", "a\n", "a,", "a/", " =", "#", "\\\n", "://", "a-",
)  # fmt: skip
_LITERAL = re.compile(r"[A-Za-z_]{2,20}", re.ASCII)
_MOST_LITERALS = 12
_SOURCES = Path(__file__).parents[2] / "asap"
LEFT_OUT = ("asap.chat", "asap.compiler", "asap.optimize", "asap.calibration")
"""Rooms that cut a message before they read it, or read what their own tools write."""


SHORT_INPUT = {
    "asap.experiments.huggingface_model._NAMED": "the name of a model, cut from a path",
    "asap.experiments.shell.starts._ASSIGNED": "one word; its command is at most 20,000 characters",
    "asap.experiments.processes._MPI": "one command, of at most 20,000 characters",
    "asap.experiments.files.yaml_text._TEMPLATE": "bounded to 2,000 characters from each beginning",
}
"""Patterns that are slow on a long text, and why they see none."""


@dataclass(frozen=True)
class Slow:
    """A pattern whose time grows too fast."""

    place: str
    fragment: str
    seconds: float
    exponent: float


def all_patterns(left_out: tuple[str, ...] = LEFT_OUT) -> dict[re.Pattern[str], list[str]]:
    """Patterns over text that modules hold, each with every place where it is: equal ones are one object."""
    import asap

    found: dict[re.Pattern[str], list[str]] = {}
    for module in pkgutil.walk_packages(asap.__path__, "asap."):
        if module.name.startswith(left_out) or module.name.endswith("__main__"):
            continue
        try:
            held = vars(importlib.import_module(module.name))
        except ImportError:
            continue
        for name, value in held.items():
            for pattern in _patterns(value):
                found.setdefault(pattern, []).append(f"{module.name}.{name}")
    return found


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        for each in (*value.keys(), *value.values()):
            yield from _patterns(each)
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _patterns(each)


def searched(patterns: dict[re.Pattern[str], list[str]]) -> dict[re.Pattern[str], str]:
    """The patterns that look for a beginning anywhere in a text: not those that only ``match`` or ``fullmatch``."""
    sources = {path: path.read_text(encoding="utf-8") for path in _SOURCES.rglob("*.py")}
    found: dict[re.Pattern[str], str] = {}
    for pattern, places in patterns.items():
        searching = [place for place in places if _calls(place, sources) - {"match", "fullmatch"}]
        if searching:
            found[pattern] = searching[0]
    return found


def _calls(place: str, sources: dict[Path, str]) -> set[str]:
    """What is called on a pattern: in its own module, or wherever its name is."""
    module, _, name = place.rpartition(".")
    own = sources.get(_SOURCES.parent / (module.replace(".", "/") + ".py"), "")
    call = re.compile(rf"\b{re.escape(name)}\.([a-z]+)\b")
    return set(call.findall(own)) or {found for text in sources.values() for found in call.findall(text)} or {"search"}


def slow(pattern: re.Pattern[str], place: str, length: int = LENGTH) -> Slow | None:
    """The first fragment on which a pattern is slow."""
    own = dict.fromkeys(_LITERAL.findall(pattern.pattern))
    for fragment in (*FRAGMENTS, *list(own)[:_MOST_LITERALS], *(f"{word} " for word in list(own)[:_MOST_LITERALS])):
        whole = _seconds(pattern, fragment, 2 * length)
        if whole < SHORTEST_S:
            continue
        exponent = min(
            log2(_seconds(pattern, fragment, 2 * length) / _seconds(pattern, fragment, length)) for _ in "12"
        )
        if exponent > LARGEST_EXPONENT:
            return Slow(place, fragment, whole, exponent)
    return None


def _seconds(pattern: re.Pattern[str], fragment: str, length: int) -> float:
    text = fragment * (length // len(fragment)) + "\x01"
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


UNBOUNDED = 20
"""Rounds from which a repetition counts as one."""
ALPHABET = "".join(map(chr, range(256))) + "é中\u2028"
"""What patterns are told apart by."""
ANY = frozenset(ALPHABET)
_REPEATS = (names.MAX_REPEAT, names.MIN_REPEAT)
_ZERO_WIDTH = (names.AT, names.ASSERT, names.ASSERT_NOT)

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
    patterns, bad = searched(all_patterns()), 0
    for pattern, place in patterns.items():
        if place not in SHORT_INPUT and (one := slow(pattern, place)):
            bad += 1
            print(f"{one.place:70} {one.fragment!r:12} {one.seconds:7.3f} s  {one.exponent:5.2f}", flush=True)
    print(f"{bad} of {len(patterns)} patterns are slow")
    every = every_pattern()
    nested = [(place, pattern) for (pattern, flags), place in every.items() if is_nested(pattern, flags)]
    for place, pattern in sorted(nested):
        print(f"{place}: {pattern[:200]!r}")
    print(f"{len(nested)} of {len(every)} patterns repeat a repetition ambiguously")
    sys.exit(bool(bad or nested))


if __name__ == "__main__":
    main()
