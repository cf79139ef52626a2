"""Every compiled pattern of the package that searches, and how its time grows with the length of hostile text.

A pattern with a repetition inside a repetition, or one that may begin anywhere and runs to the end of the text before
it fails, takes the square of the length. Each pattern searches texts of one repeated fragment: signs that patterns
name, and every literal of its own.
"""

import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from pathlib import Path

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
    "asap.experiments.named_model._NAMED": "the name of a model, cut from a path",
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


def main() -> None:
    patterns, bad = searched(all_patterns()), 0
    for pattern, place in patterns.items():
        if place not in SHORT_INPUT and (one := slow(pattern, place)):
            bad += 1
            print(f"{one.place:70} {one.fragment!r:12} {one.seconds:7.3f} s  {one.exponent:5.2f}", flush=True)
    print(f"{bad} of {len(patterns)} patterns are slow")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
