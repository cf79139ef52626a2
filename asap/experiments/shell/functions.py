"""Functions that a shell script calls itself: their bodies are read where they are called, with the arguments."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from asap.experiments.shell.lines import Line

_DEFINED = re.compile(
    r"\s*(?:function\s+(?P<word>[A-Za-z_][\w-]*)\s*(?:\(\s*\))?|(?P<plain>[A-Za-z_][\w-]*)\s*\(\s*\))\s*(?P<body>\{.*)?",
    re.DOTALL | re.ASCII,
)
_OPENS, _CLOSES = re.compile(r"(?:^|\s)\{\s*$"), re.compile(r"\s*\}")
_REDIRECTS, _INTO = re.compile(r"^[\d&]?[<>]"), (">", ">>", "<", "&>", "2>", "1>")
_BEFORE = r"(?:^|[;&|{(!]|\b(?:then|do|else|time|exec)\b)\s*"
"""What may stand before the name of a function that is called."""


def functions_of(lines: Sequence[Line]) -> tuple[dict[str, tuple[Line, ...]], tuple[Line, ...]]:
    """Functions that are defined and called in a script, by name, and its lines without these.

    A function that nothing calls stays where it is, as what calls it may not be followed.
    """
    found, places = dict[str, tuple[Line, ...]](), dict[str, range]()
    index = 0
    while index < len(lines):
        name, end, body = _definition(lines, index)
        if name is not None:
            found[name], places[name] = body, range(index, end)
        index = end
    called = {name for name in found if _is_called(name, lines, places[name])}
    inside = {place for name in called for place in places[name]}
    rest = tuple(line for place, line in enumerate(lines) if place not in inside)
    return {name: found[name] for name in called}, rest


def arguments_of(words: Sequence[str]) -> Mapping[str, str]:
    """The arguments of a call as variables."""
    given = [word for before, word in pairwise(("", *words)) if not _REDIRECTS.search(word) and before not in _INTO]
    every = " ".join(f'"{word}"' if " " in word else word for word in given)
    return {str(place): word for place, word in enumerate(given, 1)} | {"#": str(len(given)), "@": every}


def _definition(lines: Sequence[Line], index: int) -> tuple[str | None, int, tuple[Line, ...]]:
    """The name of a function that is defined at a place, where its definition ends, and its body."""
    said = _DEFINED.fullmatch(lines[index].text)
    if said is None:
        return None, index + 1, ()
    name, first = said["word"] or said["plain"], (said["body"] or "").strip()
    start = index + 1
    if not first:
        if start == len(lines) or lines[start].text.strip() != "{":
            return None, index + 1, ()
        start += 1
    elif first != "{":
        inner, closed, _ = first[1:].rpartition("}")
        return (name, start, (Line(lines[index].number, inner),)) if closed else (None, start, ())
    depth = 1
    for place in range(start, len(lines)):
        text = lines[place].text
        depth += bool(_OPENS.search(text)) - bool(_CLOSES.match(text))
        if not depth:
            return name, place + 1, tuple(lines[start:place])
    return None, index + 1, ()


def _is_called(name: str, lines: Sequence[Line], defined: range) -> bool:
    call = re.compile(rf"{_BEFORE}{re.escape(name)}(?=[\s;&|)]|$)(?!\s*\()", re.MULTILINE)
    return any(
        place not in defined and name in line.text and call.search(line.text) for place, line in enumerate(lines)
    )
