"""Arguments of a command that no Megatron-LM has: those of a fork, whose effect is not known, and slips."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from asap.core.text import plain
from asap.experiments.megatron.names import READ
from asap.experiments.settings.own_names import decides, recomputes
from asap.experiments.shell import options

_NAMES = Path(__file__).parent / "megatron_arguments.txt"
_PROGRAM = ".py "
_NESTED = re.compile(r"\$\([^()]*\)")
_NEGATIONS = ("no_", "disable_")
_MOST_LISTED = 6
_EXPERTS = re.compile(r"(?:^|_)(?:num|n|number_of)_(?:\w+_)?experts$|(?:^|_)experts_(?:num|count|number)$")
_MEETING = re.compile(
    r"(?:^|_)(?:addr|address|port|host|hostfile|hostname|mpi|rdzv|(?:node|local|machine)_rank)(?:_|$)"
)
"""In names of arguments that say how processes find each other, and nothing of a step."""
_ONE = ("0", "1", "none", "null", "")


def arguments_within(command: str) -> str:
    """What follows the program in a command that starts it, which is behind its launcher."""
    return _NESTED.sub("", command).partition(_PROGRAM)[2]


def foreign_arguments(arguments: str) -> tuple[str, ...]:
    """Arguments of a program that Megatron-LM does not have; those that by their name decide the model come first."""
    said = dict.fromkeys(option.name for option in options(_NESTED.sub("", arguments)))
    foreign = [key for key in said if not _is_known(key) and not _MEETING.search(key)]
    return tuple(sorted(foreign, key=lambda key: not decides(key)))


def decides_recomputation(foreign: Iterable[str]) -> bool:
    """Whether one of them by its name says what is recomputed, or kept in host memory."""
    return any(recomputes(key) for key in foreign)


def counts_experts(arguments: str) -> bool:
    """Whether an argument that Megatron-LM does not have gives a number of experts, by its name and value."""
    said = (option for option in options(_NESTED.sub("", arguments)) if _EXPERTS.search(option.name))
    return any(not _is_known(option.name) and option.words and option.words[0] not in _ONE for option in said)


def note_on_foreign(foreign: Sequence[str], name: str) -> str | None:
    """A note on arguments that Megatron-LM does not have; ``None`` where it has them all.

    Args:
        foreign: their names.
        name: of the script.
    """
    if not foreign:
        return None
    options_ = [f"--{key.replace('_', '-')}" for key in foreign]
    most = max(_MOST_LISTED, sum(map(decides, foreign)))
    listed = plain(", ".join(options_[:most]), 400) + (", …" if len(options_) > most else "")
    return f"{name} sets what no Megatron-LM has, so that what it changes is not known: {listed}"


def _is_known(key: str) -> bool:
    return any(form in _known() for form in (key, *(key.removeprefix(word) for word in _NEGATIONS)))


@cache
def _known() -> frozenset[str]:
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return READ | {word for line in lines if not line.startswith("#") for word in line.split()}
