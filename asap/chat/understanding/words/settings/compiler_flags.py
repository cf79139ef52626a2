"""Flags of a compiler or a runtime that a text names: a number in one of them is nothing of the run."""

import re

from asap.chat.understanding.quantities.blanked import blanked
from asap.flags.environment import GivenFlag

_NAMED = re.compile(
    r"(?<![\w=.])(?:--?)?(?!(?:XLA_FLAGS|LIBTPU_INIT_ARGS)\b)(?P<name>(?i:(?:xla|libtpu|tpu|megascale)_\w+)|(?:NCCL|CUDA|NVTE|TORCH|PYTORCH|XLA)_[A-Z_\d]+)"
    r"(?!\w)(?:\s*=\s*(?P<value>[^\s,;?!]+))?"
)
_HOLDERS = {"LIBTPU_INIT_ARGS", "XLA_FLAGS"}
"""Variables that hold flags, and are none themselves."""


def flags_named(text: str) -> tuple[GivenFlag, ...]:
    """The flags, each with the value that it is given; without one it is switched on."""
    found = {match["name"]: match["value"] or "true" for match in _NAMED.finditer(text)}
    return tuple(GivenFlag(name, value) for name, value in found.items() if name not in _HOLDERS)


def without_flags(text: str) -> str:
    """The text with spaces in place of the flags."""
    return blanked(text, [match.span() for match in _NAMED.finditer(text)])
