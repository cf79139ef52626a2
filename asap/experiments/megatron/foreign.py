"""Arguments on a command of Megatron-LM that are none of its own."""

import re
from collections.abc import Sequence
from functools import cache

from asap.core.text import plain
from asap.experiments.settings.remarks import decides
from asap.experiments.shell import options
from asap.stacks.registry import irrelevant, spec

_NESTED = re.compile(r"\$\([^()]*\)")
_NEGATIONS = ("no_", "disable_")
_MOST_LISTED = 6
_EXPERTS = re.compile(r"(?:^|_)(?:num|n|number_of)_(?:\w+_)?experts$|(?:^|_)experts_(?:num|count|number)$")
_MEETING = re.compile(
    r"(?:^|_)(?:addr|address|port|host|hostfile|hostname|mpi|rdzv|(?:node|local|machine)_rank)(?:_|$)"
)
"""In names of arguments that say how processes find each other, and nothing of a step."""
_ONE = ("0", "1", "none", "null", "")


def foreign_arguments(command: str, of_run: bool) -> tuple[tuple[str, ...], bool]:
    """Arguments that Megatron-LM does not have, those that by their name decide the model first; and whether one gives
    a number of experts, by its name and value.

    Args:
        command: that takes them.
        of_run: whether it starts a run: what stands before its program is then a launcher's.
    """
    text = _NESTED.sub("", command)
    said = [one for one in options(text.partition(".py ")[2] if of_run else text) if not _is_known(one.name)]
    names = [key for key in dict.fromkeys(one.name for one in said) if not _MEETING.search(key)]
    counts = [one.words[0] for one in said if one.words and _EXPERTS.search(one.name)]
    return tuple(sorted(names, key=lambda key: not decides(key))), any(count not in _ONE for count in counts)


def note_on_foreign(foreign: Sequence[str]) -> str | None:
    """What a script does with arguments that Megatron-LM does not have; ``None`` where it has them all."""
    if not foreign:
        return None
    named = [f"--{key.replace('_', '-')}" for key in foreign]
    most = max(_MOST_LISTED, sum(map(decides, foreign)))
    listed = plain(", ".join(named[:most]), 400) + (", …" if len(named) > most else "")
    return f"sets arguments that Megatron-LM does not have; their effect is unknown: {listed}"


def _is_known(key: str) -> bool:
    return any(form in _known() for form in (key, *(key.removeprefix(word) for word in _NEGATIONS)))


@cache
def _known() -> frozenset[str]:
    return spec("megatron").words() | irrelevant("megatron") | {*spec("megatron").switches}
