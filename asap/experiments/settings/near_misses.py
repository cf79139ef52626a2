"""Settings whose names are almost those that a reader asks for: misspelt, and so without effect on what is read."""

import difflib
from collections.abc import Collection

from asap.core.text import plain

_ALMOST = 0.93
"""Share of equal letters; the closest names that Megatron-LM has, ``hybrid_override_pattern`` and that of
multi-token prediction, have 0.92."""
_MOST = 3


def near_misses(said: Collection[str], missing: Collection[str]) -> tuple[str, ...]:
    """A note on settings that nothing asks for and that almost have the name of one that is missing.

    Args:
        said: names that nothing asks for.
        missing: names that are asked for and not said.
    """
    pairs = [(key, near) for key in sorted(said) if (near := nearest(key, missing))]
    if not pairs:
        return ()
    shown = ", ".join(f"{plain(key, 60)} (did you mean {near}?)" for key, near in pairs[:_MOST])
    return (f"not read, as there is no such setting: {shown}",)


def nearest(key: str, missing: Collection[str], almost: float = _ALMOST) -> str | None:
    """The missing name with nearly the same letters, or the same in another order."""
    swapped = next((name for name in missing if len(name) == len(key) and sorted(name) == sorted(key)), None)
    return swapped or next(iter(difflib.get_close_matches(key, missing, n=1, cutoff=almost)), None)
