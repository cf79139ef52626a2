"""Words of a command, as they are written and without their quotes."""

import re
import shlex
from collections.abc import Iterator

_WITHIN_WORD = re.compile(r"(?<=[\w=./-])\$\([^()\"']*\)")
_ESCAPED_IN_QUOTES = '"\\$`\n'


def written_words(command: str) -> list[str]:
    """The words of a command with their quotes and substitutions."""
    gaps = [place for place in _outside(command) if command[place].isspace()]
    edges = zip([-1, *gaps], [*gaps, len(command)], strict=True)
    return [command[start + 1 : end] for start, end in edges if end > start + 1]


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


def _outside(text: str) -> Iterator[int]:
    """Places of what is outside of quotes, substitutions, arrays, ``[[ … ]]`` and ``(( … ))``."""
    closing: list[str] = []
    index = 0
    while index < len(text):
        char, inner = text[index], closing[-1] if closing else ""
        if char == "\\" and inner != "'":
            index += 2
            continue
        if char == inner:
            closing.pop()
        elif opened := _opens(text, index, inner):
            closing.append(opened)
            index += char == "$"
        elif not closing:
            yield index
        index += 1


def _opens(text: str, index: int, inner: str) -> str:
    """What closes that which the character at a place opens; nothing if it opens nothing."""
    char, before = text[index], text[index - 1] if index else ""
    if inner == "'":
        return ""
    if char == "$":
        return {"(": ")", "{": "}"}.get(text[index + 1 : index + 2], "")
    if char == "[" and not inner:
        return "]" if text.startswith("[[ ", index) and (not before or before.isspace()) else ""
    if char == "(":
        arithmetic = text.startswith("((", index) and (not before or before.isspace())
        return ")" if inner == ")" or (not inner and (before == "=" or arithmetic)) else ""
    quotes = '"`' if inner == '"' else "'\"`"
    return char if char in quotes else ""
