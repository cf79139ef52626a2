"""Words of a command, as they are written and without their quotes; its long options; its redirections."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_WITHIN_WORD = re.compile(r"(?<=[\w=./-])\$\([^()\"']*\)")
_ESCAPED_IN_QUOTES = '"\\$`\n'


def unquoted(word: str) -> str:
    """A written word without quotes and escapes."""
    parts: list[str] = []
    quote, index = "", 0
    while index < len(word):
        char = word[index]
        if char == "\\" and quote != "'" and index + 1 < len(word):
            following = word[index + 1]
            parts.append(following if not quote or following in _ESCAPED_IN_QUOTES else f"\\{following}")
            index += 2
            continue
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        else:
            parts.append(char)
        index += 1
    return "".join(parts)


def words(command: str) -> list[str]:
    """The words of a command; operators such as ``&&`` are words of their own, a substitution that ends a word is not:
    ``run_name=7b-$(date +%s)``, which stays open."""
    lexer = shlex.shlex(_WITHIN_WORD.sub("``", command), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return command.split()


_TARGET = r"[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'|;&()<>])+"
_REDIRECTION = re.compile(
    r"(?P<quoted>\"(?:\\.|[^\"\\])*\"|'[^']*')"
    rf"|(?<![^\s\"'])(?:[\d&]?>{{1,2}}(?:&[\d-]|{_TARGET})|\d?<(?![<(]){_TARGET})",
    re.DOTALL,
)
_ANY_OPTION = re.compile(r"(?:^|\s)--[A-Za-z]")


def drop_redirections(text: str) -> str:
    """A command without its redirections; a quoted text stays as it is, unless it is a command itself."""
    return _REDIRECTION.sub(_left, text) if ">" in text or "<" in text else text


def _left(found: re.Match[str]) -> str:
    quoted = found["quoted"]
    if not quoted:
        return ""
    return f"{quoted[0]}{drop_redirections(quoted[1:-1])}{quoted[-1]}" if _ANY_OPTION.search(quoted) else quoted


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
    text = drop_redirections(text)
    found = list(_OPTION.finditer(text))
    following = (option.start() for option in found[1:])
    passed, newlines = 0, 0
    for option in found:
        end = next(following, len(text))
        newlines += text.count("\n", passed, option.start())
        passed = option.start()
        rest = text[option.end() : end]
        if not option[0].endswith("=") and rest[:1] in "\"')":
            rest = rest[1:]  # closes around the switch
        yield Option(option[1].replace("-", "_"), tuple(_words(rest)), line + newlines)


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text.replace('\\"', " ")):
        word = next(group for group in found.groups() if group is not None).strip()
        if word:
            yield word
