"""What carries a log: an encoding, prefixes of launchers and collectors, objects of JSON; its lines without them."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice

from pydantic_core import from_json

from asap.experiments.logs.formats import table

_MOST = 4
"""Carriers that lie within each other."""
_STRAY = 2
"""Lines of a log that may lack what all others have."""
_COLOUR = r"(?:\x1b\[[\d;]{0,20}m)*"
_ENCODING_PEEK = 4096
_WRITTEN = re.compile(rb"^[ \t]*[^\s]", re.MULTILINE)
_OF_JSON = re.compile(rb'^[ \t]*[{}\[\]"]', re.MULTILINE)
_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)


@dataclass(frozen=True)
class _Prefix:
    """Text before each line."""

    pattern: re.Pattern[bytes]

    def carries(self, lines: bytes) -> bool:
        """Whether every line has it, but for what kubectl and docker say of themselves."""
        begin = islice(_WRITTEN.finditer(lines), _STRAY + 1)
        if not any(self.pattern.match(lines, line.start()) for line in begin):
            return False
        having = len(self.pattern.findall(lines))
        return len(_WRITTEN.findall(lines)) - having <= min(_STRAY, having // 10)

    def unwrapped(self, lines: bytes) -> bytes:
        """The lines without it."""
        return self.pattern.sub(b"", lines)


@dataclass(frozen=True)
class _Json:
    """Objects of JSON, each with a line in one of their members: one object a line, or a list of them."""

    pattern: re.Pattern[bytes]

    def carries(self, lines: bytes) -> bool:
        """Whether there is nothing but such objects."""
        if not lines.lstrip().startswith((b"{", b"[")) or not self.pattern.search(lines):
            return False
        lacking = len(_OBJECT.findall(lines)) - len(self.pattern.findall(lines))
        return lacking <= _STRAY and len(_OF_JSON.findall(lines)) == len(_WRITTEN.findall(lines))

    def unwrapped(self, lines: bytes) -> bytes:
        """The lines in them; Docker cuts long ones, which have no line's end then."""
        texts: list[bytes] = []
        for name, text in self.pattern.findall(lines):
            line = _unescaped(text) if b"\\" in text else text
            texts.append(line if name == b"log" or line.endswith(b"\n") else line + b"\n")
        return b"".join(texts)


def _unescaped(text: bytes) -> bytes:
    try:
        return from_json(b'"' + text + b'"').encode("utf-8", "replace")
    except ValueError:
        return text


def decoder_of(head: bytes) -> Callable[[bytes], bytes]:
    """How to read pieces of a text as UTF-8: PowerShell writes UTF-16, without its mark where it appends.

    Args:
        head: the beginning of the text.
    """
    peek = head[:_ENCODING_PEEK]
    if peek.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = "utf-16"
    elif peek.startswith(BOM_UTF8):
        encoding = "utf-8-sig"
    elif b"\0" in peek and "\n" in (text := peek.decode("utf-16-le", "replace")) and "\0" not in text:
        encoding = "utf-16-le"
    else:
        return lambda piece: piece
    decoder = getincrementaldecoder(encoding)("replace")
    return lambda piece: decoder.decode(piece).encode("utf-8", "replace")


def unwrapper_of(lines: bytes) -> Callable[[bytes], bytes]:
    """How to take lines out of what carries them.

    Args:
        lines: the beginning of the log.
    """
    found: list[_Prefix | _Json] = []
    while len(found) < _MOST and (carrier := next((one for one in _carriers() if one.carries(lines)), None)):
        found.append(carrier)
        lines = carrier.unwrapped(lines)

    def unwrap(piece: bytes) -> bytes:
        for carrier in found:
            piece = carrier.unwrapped(piece)
        if b"\r" in piece:  # progress bars are redrawn behind one
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return piece

    return unwrap


def lines_of(text: bytes) -> bytes:
    """The lines of a text that is in memory, each with its end."""
    lines = decoder_of(text)(text) + b"\n"
    return unwrapper_of(lines)(lines)


def without_rank(line: str) -> str:
    """The line without what a launcher wrote before it."""
    return line[len(rank_of(line)) :]


def rank_of(line: str) -> str:
    """What a launcher wrote before a line; empty where it wrote nothing."""
    found = _some().match(line)
    return found[0] if found else ""


@cache
def _carriers() -> tuple[_Prefix | _Json, ...]:
    objects = ["|".join(one["members"]) for one in table("carriers")["json"]]
    string = r'[ \t]*:[ \t]*"([^"\\\n]*(?:\\.[^"\\\n]*)*)"'
    return (
        *(_Json(re.compile(rf'"({members})"{string}'.encode())) for members in objects),
        *(
            _Prefix(re.compile(rf"^{_COLOUR}(?:{one['pattern']}){_COLOUR} ?".encode(), re.MULTILINE))
            for one in table("carriers")["prefix"]
        ),
    )


@cache
def _some() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?:{'|'.join(one['pattern'] for one in table('carriers')['prefix'] if one.get('some'))})\s?){{1,{_MOST}}}"
    )
