"""What a Python program takes where nothing is said: defaults of its environment (``os.getenv("TP", 8)``) and of its
command line (``parser.add_argument("--tp", default=8)``)."""

import ast
import re
from collections.abc import Collection, Mapping
from typing import Any

from asap.core.text import plain
from asap.experiments.launch.python.objects import CLASS, OWNER, UNKNOWN

OTHER = object()
"""A call is none of these."""
_ENVIRONMENT = frozenset(("os.getenv", "os.environ.get", "environ.get", "getenv"))
_CONVERSIONS = {"int": int, "float": float, "str": str}
_PARSER = re.compile(r"(?:^|\.)ArgumentParser$")
_GROUP = re.compile(r"\.add_(?:argument|mutually_exclusive)_group$")
_DECLARE, _PARSE, _PARSE_KNOWN = "add_argument", "parse_args", "parse_known_args"
_SWITCHES = {"store_true": False, "store_false": True}
_OPTIONS, _PARSED = "--", "parsed arguments"
_LITERAL = (str, int, float, bool)
_MOST = 8


def default_of(call: ast.Call, given: list[Any], words: Mapping[str, Any], owner: Any, taken: set[str]) -> Any:
    """What a call gives by default; ``OTHER`` where it is another kind of call.

    Args:
        call: as it is written.
        given: its arguments without a name.
        words: those with one.
        owner: the object whose method it is.
        taken: where defaults that are taken are noted.
    """
    called = ast.unparse(call.func)
    if called in _ENVIRONMENT:
        default = given[1] if len(given) > 1 else words.get("default")
        return _noted(str(given[0]), default, taken) if given and isinstance(default, _LITERAL) else UNKNOWN
    if called in _CONVERSIONS and len(given) == 1:
        return _converted(called, given[0])
    method = called.rpartition(".")[2]
    parser = _parser(owner) if method in (_DECLARE, _PARSE, _PARSE_KNOWN) else None
    if parser is None:
        return OTHER
    if method == _DECLARE:
        kind = next((ast.unparse(word.value) for word in call.keywords if word.arg == "type"), "")
        parser.setdefault(_OPTIONS, {}).update(_declared(given, words, kind))
        return None
    parsed = {CLASS: _PARSED, **parser.get(_OPTIONS, {})}
    return parsed if method == _PARSE else [parsed, []]


def attribute_of(owner: Any, name: str, taken: set[str]) -> Any:
    """The attribute of an object; an argument of the command line is noted."""
    found = owner.get(name, UNKNOWN) if isinstance(owner, dict) else UNKNOWN
    if isinstance(owner, dict) and owner.get(CLASS) == _PARSED and isinstance(found, _LITERAL):
        return _noted(name, found, taken)
    return found


def notes_on(taken: Collection[str]) -> tuple[str, ...]:
    """The note on defaults that are taken; none where none is."""
    if not taken:
        return ()
    listed = ", ".join(sorted(taken)[:_MOST]) + (", …" if len(taken) > _MOST else "")
    return (f"of its command line and environment, which are not known, the defaults are taken: {plain(listed, 240)}",)


def _noted(name: str, value: Any, taken: set[str]) -> Any:
    taken.add(f"{name}={value}")
    return value


def _converted(kind: str, value: Any) -> Any:
    try:
        return _CONVERSIONS[kind](value) if isinstance(value, _LITERAL) else UNKNOWN
    except (ValueError, OverflowError):
        return UNKNOWN


def _parser(owner: Any) -> dict[str, Any] | None:
    """The parser that an object is, or that it is a group of."""
    if not isinstance(owner, dict):
        return None
    made_by = str(owner.get(CLASS))
    return owner if _PARSER.search(made_by) else _parser(owner.get(OWNER)) if _GROUP.search(made_by) else None


def _declared(given: list[Any], words: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """An argument by the name that it is parsed into, with its default; ``UNKNOWN`` where it has to be said."""
    names = [name for name in given if isinstance(name, str)]
    long = next((name for name in names if name.startswith("--")), names[0] if names else "")
    name = words.get("dest", long.lstrip("-").replace("-", "_"))
    value = words.get("default", _SWITCHES.get(str(words.get("action"))))
    said = value is None and (words.get("required") is True or not long.startswith("-"))
    if isinstance(value, str) and kind in _CONVERSIONS:
        value = _converted(kind, value)
    return {str(name): UNKNOWN if said else value}
