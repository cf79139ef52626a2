"""Hardware by its name in a sentence: ``v5e-128``, ``128 h100s``, ``mi300x``, ``16x p5.48xlarge``."""

import re

from asap.core.errors import ConfigError, NotFoundError
from asap.hardware.instances import known_instances
from asap.hardware.names import HardwareName

INSTEAD = re.compile(
    r"\b(?:instead of|rather than|from|replac\w+|away from|than|compared (?:to|with)|over|versus|vs\.?)"
    r"\s+(?:the\s+|an?\s+|our\s+)?$",
    re.I,
)
"""Before a name: what is to be replaced."""
_CHIP = r"v\d[a-z]{0,2}|[abh]\d{2,3}(?:-\d{2,3}gb)?|g[bh]\d{3}|mi\d{3}x"
_NAME = re.compile(rf"\b((?:{_CHIP})(?:-\d+)?|trillium|ironwood)s?\b", re.I)
_COUNTED = re.compile(
    rf"(?P<count>\d+)\s*[x×]?\s*\b(?P<chip>{_CHIP})s?(?![\w-])(?:\s+(?:chips?|devices?|tpus?|gpus?))?", re.I
)
_INSTANCE = re.compile(
    rf"(?:\b(\d+)\s*[x×]?\s*)?\b({'|'.join(map(re.escape, known_instances()))})(?:-(\d+))?(?![\w.-]*\w)", re.I
)
_OTHERWISE = {"trillium": "v6e", "ironwood": "v7x"}

Spans = list[tuple[int, int]]


def hardware_in(text: str) -> tuple[str | None, Spans]:
    """The hardware that a sentence asks for, ``None`` where it names none, and where names stand in it.

    "128 v5e chips" is ``v5e-128``, "16 p5.48xlarge" ``16x p5.48xlarge``.
    """
    if machines := [found for found in _INSTANCE.finditer(text) if not INSTEAD.search(text[: found.start()])]:
        count, name, gpus = machines[-1].groups()
        named = f"{f'{count}x ' if count else ''}{name}{f'-{gpus}' if gpus else ''}"
        return named, [found.span() for found in _INSTANCE.finditer(text)]
    if only := _COUNTED.search(text):
        return f"{only['chip'].lower()}-{only['count']}", [only.span()]
    spans = [found.span() for found in _NAME.finditer(text)]
    names = [found[1].lower() for found in _NAME.finditer(text) if not INSTEAD.search(text[: found.start()])]
    return (_OTHERWISE.get(names[-1], names[-1]) if names else None), spans


def says_how_many(name: str) -> bool:
    """Whether a name of hardware counts it: ``v5e-256`` and ``8x p5.48xlarge`` do, ``a100-80gb`` does not."""
    parts = _parts(name)
    return parts is not None and any(part is not None for part in (parts.times, parts.size, parts.topology))


def without_count(name: str) -> str:
    """The chip or the machine that a name of hardware counts."""
    parts = _parts(name)
    return (parts.instance or parts.chip.name) if parts else name


def _parts(name: str) -> HardwareName | None:
    try:
        return HardwareName.parse(name)
    except (ConfigError, NotFoundError):
        return None
