"""Long options of a command: ``--tensor-model-parallel-size 4``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from asap.experiments.shell.redirections import without_redirections

_OPTION = re.compile(r"(?<![\w-])--([A-Za-z](?:[\w.-]*\w)?)(?:=|\b)")
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^\s\"'()|;&<>\\]+)")


@dataclass(frozen=True)
class Option:
    """``--name value …``, its name with underscores, and the line that it stands on."""

    name: str
    words: tuple[str, ...]
    line: int


def options(text: str, line: int = 1) -> Iterator[Option]:
    """Each option with the words up to the next one; ``line`` is that of the text's beginning."""
    text = without_redirections(text)
    found = list(_OPTION.finditer(text))
    following = (option.start() for option in found[1:])
    passed, newlines = 0, 0
    for option in found:
        end = next(following, len(text))
        newlines += text.count("\n", passed, option.start())
        passed = option.start()
        rest = text[option.end() : end]
        rest = rest if option[0].endswith("=") else _unclosed(rest)
        yield Option(option[1].replace("-", "_"), tuple(_words(rest)), line + newlines)


def _unclosed(text: str) -> str:
    """What follows a switch, without the quote or bracket that closes around it."""
    return text[1:] if text[:1] in "\"')" else text


def _words(text: str) -> Iterator[str]:
    if text.strip().startswith("("):
        text = text.strip().replace("(", "[").replace(")", "]") if "*" in text else text
    for found in _WORD.finditer(text.replace('\\"', " ")):
        word = next(group for group in found.groups() if group is not None).strip()
        if word:
            yield word
