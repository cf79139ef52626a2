"""A training log as text: packed, of any encoding and length, carried by launchers and collectors; and its numbers."""

import bz2
import lzma
import math
import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, cast
from zipfile import BadZipFile, ZipFile

from pydantic_core import from_json

from asap.core.errors import ConfigError, NotFoundError
from asap.core.text import plain
from asap.experiments.logs.formats import table
from asap.experiments.logs.metrics_table import as_lines, is_table

_MOST_CARRIERS = 4  # carriers that lie within each other
_STRAY = 2  # lines of a log that may lack what all others have
_OWN_COLOUR = r"(?:\x1b\[[\d;]{0,20}m)*"
_ENCODING_PEEK = 4096
_WRITTEN = re.compile(rb"^[ \t]*[^\s]", re.MULTILINE)
_OF_JSON = re.compile(rb'^[ \t]*[{}\[\]"]', re.MULTILINE)
_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)
_END = rb"\n"  # of a line, within a text of JSON


@dataclass(frozen=True)
class _Prefix:
    """Text before each line."""

    pattern: re.Pattern[bytes]
    of_process: bool = False

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
    """Objects of JSON, each with a line in one of their members; where it ``cuts`` lines, they say where they end."""

    pattern: re.Pattern[bytes]
    cuts: bool

    def carries(self, lines: bytes) -> bool:
        """Whether there is nothing but such objects."""
        if not lines.lstrip().startswith((b"{", b"[")) or not self.pattern.search(lines):
            return False
        lacking = len(_OBJECT.findall(lines)) - len(self.pattern.findall(lines))
        return lacking <= _STRAY and len(_OF_JSON.findall(lines)) == len(_WRITTEN.findall(lines))

    def unwrapped(self, lines: bytes) -> bytes:
        """The lines in them; Docker cuts long ones, which have no line's end then."""
        found = self.pattern.findall(lines)
        text = b"".join(found) if self.cuts else (_END.join(found) + _END).replace(_END + _END, _END)
        try:
            return from_json(b'"' + text + b'"').encode("utf-8", "replace")
        except ValueError:  # half of a pair of surrogates, which Docker may cut
            return text.replace(_END, b"\n").replace(rb"\"", b'"')


def decoder_of(head: bytes) -> Callable[[bytes], bytes]:
    """How to read pieces of a text that begins so as UTF-8: PowerShell writes UTF-16, appended without its mark."""
    peek = head[:_ENCODING_PEEK]
    marked = peek.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if not marked and (b"\0" not in peek or "\0" in (text := peek.decode("utf-16-le", "replace")) or "\n" not in text):
        return lambda piece: piece
    decoder = getincrementaldecoder("utf-16" if marked else "utf-16-le")("replace")
    return lambda piece: decoder.decode(piece).encode("utf-8", "replace")


@dataclass(frozen=True)
class Unwrapper:
    """Takes lines out of what carries them."""

    objects: tuple[_Prefix | _Json, ...] = ()
    """Carriers up to the last one of JSON: a whole piece is taken out of them."""
    prefixes: tuple[_Prefix, ...] = ()
    """Those within: a line that counts is taken out of them, and no other."""

    @classmethod
    def of(cls, lines: bytes) -> "Unwrapper":
        """The carriers of a log, by the lines at its beginning."""
        found: list[_Prefix | _Json] = []
        while len(found) < _MOST_CARRIERS and (one := next((one for one in _carriers() if one.carries(lines)), None)):
            found.append(one)
            lines = one.unwrapped(lines)
        whole = max((place + 1 for place, one in enumerate(found) if isinstance(one, _Json)), default=0)
        return cls(tuple(found[:whole]), tuple(one for one in found[whole:] if isinstance(one, _Prefix)))

    def piece(self, text: bytes) -> bytes:
        """Lines with only a prefix each; a carriage return, behind which progress bars are redrawn, ends one too."""
        for carrier in self.objects:
            text = carrier.unwrapped(text)
        text = text.replace(b"^M", b"\r") if b"^" in text else text  # as cat -v and editors show it
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text

    def lines(self, text: bytes) -> bytes:
        """Lines, or one of them, of a piece without their prefixes."""
        for carrier in self.prefixes:
            text = carrier.unwrapped(text)
        return text

    def process(self, text: bytes) -> str:
        """What launchers wrote before a line that tells its process."""
        said = b""
        for carrier in self.prefixes:
            said += found[0] if carrier.of_process and (found := carrier.pattern.match(text)) else b""
            text = carrier.unwrapped(text)
        return f"{clean(said)}{rank_of(clean(text))}"


def lines_of(text: bytes) -> bytes:
    """The lines of a text that is in memory, each with its end."""
    lines = decoder_of(text)(text) + b"\n"
    unwrapper = Unwrapper.of(lines)
    return unwrapper.lines(unwrapper.piece(lines))


def strip_rank(line: str) -> str:
    """The line without what a launcher wrote before it."""
    return line[len(rank_of(line)) :]


def rank_of(line: str) -> str:
    """What a launcher wrote before a line; empty where it wrote nothing."""
    found = _some().match(line)
    return found[0] if found else ""


@cache
def _carriers() -> tuple[_Prefix | _Json, ...]:
    escaped = r"(?:(?<=[^\\]\\)|(?<=[^\\]\\\\\\))"  # by one backslash or three
    string = rf'[ \t]*:[ \t]*"([^"]*(?:{escaped}"[^"]*)*)"'
    known, own = table("carriers"), _OWN_COLOUR
    members = ((rf'"{one["member"]}"{string}', one.get("cuts", False)) for one in known["json"])
    prefixes = ((rf"^{own}(?:{one['pattern']}){own} ?", one.get("some", False)) for one in known["prefix"])
    return (
        *(_Json(re.compile(text.encode()), cuts) for text, cuts in members),
        *(_Prefix(re.compile(text.encode(), re.MULTILINE), some) for text, some in prefixes),
    )


@cache
def _some() -> re.Pattern[str]:
    one_of = "|".join(one["pattern"] for one in table("carriers")["prefix"] if one.get("some"))
    return re.compile(rf"(?:(?:{one_of})\s?){{1,{_MOST_CARRIERS}}}")


CHUNK = 4 << 20
LONGEST_LINE = 64 << 10  # bytes of a line that are looked at; a log of one endless line stays within bounded memory
_COLOUR = re.compile(
    r"\x1b?\[[0-9;?]{1,20}m|\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f\ufeff]"
)
"""Colours, control characters, and byte-order marks of joined files; a page that shows a log may have lost the escape
before a colour."""
_BARE_COLOUR = re.compile(r"\[[0-9;?]{1,20}m")
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\3\4": "zip"}


def open_log(path: Path) -> IO[bytes]:
    """The bytes of a log, unpacked where it is packed (gzip, bzip2, xz, ZIP of one file).

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read, or is packed in another way.
    """
    try:
        stream = path.open("rb")
        head = stream.read(6)
        stream.seek(0)
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=str(path)) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from error
    packed = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    if packed == "zip":
        return _only_file(stream, path)
    if packed == "zstandard":
        stream.close()
        raise ConfigError("is packed with zstandard", where=str(path), hint="unpack it first: zstd -d FILE")
    from isal import igzip

    unpack = {"gzip": igzip.open, "bzip2": bz2.open, "xz": lzma.open}.get(packed or "")
    plainly = cast("IO[bytes]", unpack(stream, "rb")) if unpack else stream
    return as_lines(plainly, path) if is_table(path) else plainly


def _only_file(stream: IO[bytes], path: Path) -> IO[bytes]:
    """The one file that a ZIP holds."""
    try:
        archive = ZipFile(stream)
        names = [one.filename for one in archive.infolist() if not one.is_dir()]
        if len(names) == 1:
            return archive.open(names[0])
    except (BadZipFile, RuntimeError, NotImplementedError) as error:  # broken, encrypted, packed in another way
        raise ConfigError(f"cannot be read: {plain(str(error), 80)}", where=str(path)) from error
    listed = plain(", ".join(names[:3]), 120)
    raise ConfigError(f"holds {len(names)} files ({listed})", where=str(path), hint="unpack it, and give one of them")


def chunks(path: Path, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Pieces of a log that end with a line; a carriage return ends one too, as progress bars write them.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read.
    """
    rest, total = b"", 0
    try:
        with open_log(path) as stream:
            head = stream.read(CHUNK)
            decode = decoder_of(head)
            peek = decoder_of(head)(head[:_ENCODING_PEEK]).decode("utf-8", "replace")
            binary = peek.count("\ufffd") > 0.3 * len(peek)
            if unlike := "binary" if binary else "" if peek.strip() else "empty":
                raise ConfigError(f"is {unlike}, not the log of a run", where=str(path), hint="give its text output")
            while head:
                total += len(head)
                rest += decode(head)
                if head := stream.read(CHUNK):
                    cut = rest.rfind(b"\n") + 1 or rest.rfind(b"\r") + 1
                    if len(rest) - cut > CHUNK:
                        rest, cut = rest + b"\n", len(rest) + 1
                    if cut:
                        yield rest[:cut]
                    rest = rest[cut:]
                if progress is not None:
                    progress(total)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile) as error:
        if not total:
            raise ConfigError(f"cannot be read: {type(error).__name__}", where=str(path)) from error
        # a log that is still packed, or was cut: what there is counts
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def clean(line: bytes) -> str:
    """A line as text, without colours and control characters."""
    text = line[:LONGEST_LINE].decode("utf-8", "replace")
    return text if text.isprintable() and not _BARE_COLOUR.search(text) else _COLOUR.sub("", text)


_SUFFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_BAR_TITLE = re.compile(r"^(?P<title>[^|%]*?)\d{1,3}%\|")
_LETTER = re.compile(r"[^\W\d_]")
_TRAINING = re.compile(r"train|epoch|step|iter|loss", re.IGNORECASE)
CLOCK = re.compile(r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?(?![\d:])")
"""A time of the day in the prefix of a line."""
_DURATION = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")
_LAST_DIGIT = re.compile(r"\.(\d+)(?!.*\.\d)")
_SIZE = re.compile(r"([\d.]+) ?([KMGT]?)(i?)(?:B(?:ytes)?|bytes)?$", re.IGNORECASE)


def number(text: str) -> float | None:
    """A printed number: ``1,234.5``, ``1.23K``; ``None`` where it is none, or not finite."""
    text = text.replace(",", "").strip()
    factor = _SUFFIX.get(text[-1:], 1.0)
    try:
        value = float(text[:-1] if factor != 1.0 else text) * factor
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def size(text: str) -> float | None:
    """Bytes of ``112.00 MiB``, ``33.27G`` (of 2^30, as XLA and PyTorch write both), ``4294967296 bytes``."""
    if (found := _SIZE.match(text.strip())) is None or (value := number(found[1])) is None:
        return None
    return value * 2 ** (10 * " KMGT".index(found[2].upper() or " ")) or None


def seconds_of(text: str) -> tuple[float, float] | None:
    """Seconds of a number, of ``0:03:29`` or ``4 days, 5:06:09``, or of a date, from a beginning that all dates have;
    and what the last digit is worth. ``None`` where it is none of these."""
    text = text.replace(",", ".") if text.count(":") > 1 and "day" not in text else text  # as Python's logging has it
    worth = _SUFFIX.get(text[-1:], 1.0) * (10.0 ** -len(found[1]) if (found := _LAST_DIGIT.search(text)) else 1.0)
    if (value := number(text)) is not None:
        return value, worth
    if found := _DURATION.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return ((24 * days + hours) * 60 + minutes) * 60 + seconds, worth
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp(), worth
    return None


def is_training_bar(line: str) -> bool:
    """Whether a progress bar is that of training: it has no title, or one that says so."""
    found = _BAR_TITLE.match(strip_rank(line))
    title = found["title"] if found else ""
    return _LETTER.search(title) is None or _TRAINING.search(title) is not None
