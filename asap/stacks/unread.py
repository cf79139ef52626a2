"""Settings that a table does not ask for: misspelt, of no release, or of another section in another release."""

import difflib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from asap.core.text import plain
from asap.stacks.registry import folder_of, irrelevant
from asap.stacks.spec import Spec

_UNREAD = "not settings of {}, so not read; their effect is unknown: {}"
_MOST_UNREAD = 8
_ALMOST = 0.93
"""Share of equal letters; the closest names that Megatron-LM has, ``hybrid_override_pattern`` and that of
multi-token prediction, have 0.92."""
_TYPED = 0.6
"""The same for the last part of a setting that was typed, which is said to be unread in any case."""
_MOST = 3
_WHOLE_WORDS, _ENDING = 10, 3
"""Letters from which a name that lacks an ending, of as many letters at most, is taken for it (``…_checkpoint``)."""


def near_misses(said: Collection[str], missing: Collection[str], typed: Collection[str] = ()) -> tuple[str, ...]:
    """A note on settings that nothing asks for: those that almost have the name of one that is missing, and all that
    the user typed.

    Args:
        said: names that nothing asks for.
        missing: names that are asked for and not said.
        typed: those that the user typed beside the file.
    """
    shown, leaves = [], {name.rpartition(".")[2] for name in missing}
    for key in sorted(said):
        near = nearest(key, missing) or (key in typed and nearest(key.rpartition(".")[2], leaves, _TYPED))
        if near or key in typed:
            shown.append(plain(key, 60) + (f" (did you mean {near.rpartition('.')[2]}?)" if near else ""))
    return (f"not read: {', '.join(shown[:_MOST])}",) if shown else ()


def nearest(key: str, missing: Collection[str], almost: float = _ALMOST) -> str | None:
    """The missing name with nearly the same letters, the same in another order, or a few more at its end."""
    swapped = next((name for name in missing if len(name) == len(key) and sorted(name) == sorted(key)), None)
    if swapped is None and len(key) >= _WHOLE_WORDS:
        swapped = next((name for name in missing if name.startswith(key) and len(name) - len(key) <= _ENDING), None)
    return swapped or next(iter(difflib.get_close_matches(key, missing, n=1, cutoff=almost)), None)


def relocated(spec: Spec, said: Collection[str]) -> dict[str, str]:
    """Settings in a section that the table does not have, under its own name with the same end: another release has
    them elsewhere (``parallelizer.activation_checkpointing``). A short end says too little."""
    ends, sections = Counter(name.rpartition(".")[2] for name in spec.words), _sections(spec)
    named = {end: name for name in spec.words if ends[end := name.rpartition(".")[2]] == 1 and len(end) >= _WHOLE_WORDS}
    foreign = {key: key.rpartition(".")[2] for key in said if "." in key and key.partition(".")[0] not in sections}
    once = Counter(foreign.values())
    return {key: named[end] for key, end in foreign.items() if once[end] == 1 and named.get(end, key) not in said}


def _sections(spec: Spec) -> set[str]:
    return {word.partition(".")[0] for word in (*spec.words, *irrelevant(folder_of(spec)))}


def unread(spec: Spec, settings: Mapping[str, Any], typed: Collection[str] = ()) -> tuple[str, ...]:
    """A note on settings that no release has, and on those that the user ``typed`` in vain."""
    known = spec.words
    without_effect = irrelevant(folder_of(spec))
    sections = _sections(spec)
    beginnings = tuple(name for name in known if name.endswith("."))
    whole = tuple(f"{name}." for name in (*without_effect, *known))
    asked = {key for key in settings if key not in known | without_effect and not key.startswith((*beginnings, *whole))}
    listed = {name.partition(".")[0] for name in without_effect if "." in name}
    missing = known - {*beginnings}
    parts = {key: key.partition(".")[0] for key in asked if not nearest(key, missing)}
    foreign = ((key, part) for key, part in parts.items() if part in listed - known or part not in sections)
    own = sorted({key if part in listed else part for key, part in foreign})
    shown = ", ".join(plain(key, 40) for key in own[:_MOST_UNREAD])
    unknown = (_UNREAD.format(spec.name, shown),) if own and without_effect else ()
    return (*near_misses(asked, missing, typed), *unknown)
