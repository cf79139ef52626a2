"""A training log as text: packed, coloured, interleaved by ranks, of any length; and its numbers."""

import bz2
import lzma
import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast
from zipfile import BadZipFile, ZipFile

from asap.core.errors import ConfigError, NotFoundError
from asap.core.text import plain
from asap.experiments.logs.carriers import decoder_of, unwrapper_of, without_rank

CHUNK = 4 << 20
LONGEST_LINE = 64 << 10
"""Bytes of a line that are looked at; a log of one endless line stays within bounded memory."""
_COLOUR = re.compile(
    r"\x1b?\[[0-9;?]{1,20}m|\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Colours and control characters; a page that shows a log may have lost the escape before a colour."""
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
    return cast("IO[bytes]", unpack(stream, "rb")) if unpack else stream


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

    Args:
        path: of the log.
        progress: called with the bytes read so far.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read.
    """
    rest, total, unwrap = b"", 0, None
    try:
        with open_log(path) as stream:
            head = stream.read(CHUNK)
            decode = decoder_of(head)
            while head:
                total += len(head)
                text = rest + decode(head)
                cut = text.rfind(b"\n") + 1 or text.rfind(b"\r") + 1
                rest = text[cut:]
                if len(rest) > CHUNK:
                    text, rest, cut = text + b"\n", b"", len(text) + 1
                if cut:
                    unwrap = unwrap or unwrapper_of(text[:cut])
                    yield unwrap(text[:cut])
                if progress is not None:
                    progress(total)
                head = stream.read(CHUNK)
        if rest:
            yield (unwrap or unwrapper_of(rest))(rest + b"\n")
    except (OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile) as error:
        if not total:
            raise ConfigError(f"cannot be read: {type(error).__name__}", where=str(path)) from error
        if rest:  # a log that is still packed, or was cut: what there is counts
            yield (unwrap or unwrapper_of(rest))(rest + b"\n")


def clean(line: bytes) -> str:
    """A line as text, without colours and control characters."""
    text = line[:LONGEST_LINE].decode("utf-8", "replace")
    return text if text.isprintable() and not _BARE_COLOUR.search(text) else _COLOUR.sub("", text)


_SUFFIX = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
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
