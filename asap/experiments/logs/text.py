"""A training log as text: packed, coloured, interleaved by ranks, of any length; and its numbers."""

import bz2
import lzma
import math
import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from asap.core.errors import ConfigError, NotFoundError

CHUNK = 4 << 20
LONGEST_LINE = 64 << 10
"""Bytes of a line that are looked at; a log of one endless line stays within bounded memory."""
_COLOUR = re.compile(
    r"\x1b?\[[0-9;?]{1,20}m|\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Colours and control characters; a page that shows a log may have lost the escape before a colour."""
_BARE_COLOUR = re.compile(r"\[[0-9;?]{1,20}m")
_RANK = re.compile(
    r"^(?:\s*(?:\[(?:default|rank|pod|worker|node|r)?[ -_]?\d{1,6}\]:?|\(?\w{0,24}[Rr]ank[ =:]?\d{1,6}\)?:|\d{1,6}:"
    r"|\[titan\]|\d\d/\d\d/\d{4} [\d:]{8} \[\w+\|[^\]]{1,60}\]:"
    r"|\([\w.-]{1,60} pid=\d{1,9}(?:, ip=[\d.]+)?\)|[\w.-]{1,60}:\s(?=\[|\s*\{)))\s?"
)
"""What launchers write before each line: torchrun, srun --label, mpirun, Ray, Kubernetes, a viewer's numbers."""
_MOST_PREFIXES = 4
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard"}


def open_log(path: Path) -> IO[bytes]:
    """The bytes of a log, unpacked where it is packed (gzip, bzip2, xz).

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
    packed = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if packed == "gzip":
        from isal import igzip

        return cast("IO[bytes]", igzip.open(stream, "rb"))
    if packed == "bzip2":
        return cast("IO[bytes]", bz2.open(stream, "rb"))
    if packed == "xz":
        return cast("IO[bytes]", lzma.open(stream, "rb"))
    if packed is not None:
        stream.close()
        raise ConfigError(f"is packed with {packed}", where=str(path), hint="unpack it first: zstd -d FILE")
    return stream


def chunks(path: Path, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Pieces of a log that end with a line; a carriage return ends one too, as progress bars write them.

    Args:
        path: of the log.
        progress: called with the bytes read so far.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read.
    """
    rest, total = b"", 0
    try:
        with open_log(path) as stream:
            head = stream.read(CHUNK)
            decode = _to_utf8(head)
            while head:
                total += len(head)
                text = rest + decode(head)
                text = text.replace(b"\r", b"\n") if b"\r" in text else text
                cut = text.rfind(b"\n") + 1
                rest = text[cut:]
                if len(rest) > CHUNK:
                    text, rest, cut = text + b"\n", b"", len(text) + 1
                if cut:
                    yield text[:cut]
                if progress is not None:
                    progress(total)
                head = stream.read(CHUNK)
        if rest:
            yield rest + b"\n"
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if not total:
            raise ConfigError(f"cannot be read: {type(error).__name__}", where=str(path)) from error
        if rest:  # a log that is still packed, or was cut: what there is counts
            yield rest + b"\n"


def clean(line: bytes) -> str:
    """A line as text, without colours and control characters."""
    text = line[:LONGEST_LINE].decode("utf-8", "replace")
    return text if text.isprintable() and not _BARE_COLOUR.search(text) else _COLOUR.sub("", text)


def without_rank(line: str) -> str:
    """The line without what a launcher wrote before it."""
    for _ in range(_MOST_PREFIXES):
        if (found := _RANK.match(line)) is None:
            break
        line = line[found.end() :]
    return line


def _to_utf8(head: bytes) -> Callable[[bytes], bytes]:
    """How to read pieces of a text as UTF-8: PowerShell writes UTF-16."""
    if not head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return lambda piece: piece
    decoder = getincrementaldecoder("utf-16")("replace")
    return lambda piece: decoder.decode(piece).encode("utf-8", "replace")


_SUFFIX = {"K": 1e3, "M": 1e6, "G": 1e9}
_BAR_TITLE = re.compile(r"^(?P<title>[^|%]*?)\d{1,3}%\|")
_LETTER = re.compile(r"[^\W\d_]")
_TRAINING = re.compile(r"train|epoch|step|iter|loss", re.IGNORECASE)
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


def is_training_bar(line: str) -> bool:
    """Whether a progress bar is that of training: it has no title, or one that says so."""
    found = _BAR_TITLE.match(without_rank(line))
    title = found["title"] if found else ""
    return _LETTER.search(title) is None or _TRAINING.search(title) is not None
