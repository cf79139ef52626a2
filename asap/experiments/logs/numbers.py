"""Numbers, sizes and progress bars as programs print them."""

import math
import re

from asap.experiments.logs.text import without_rank

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
