"""Arguments of a command that no Megatron-LM has: those of a fork, whose effect is not known, and slips."""

import re
from functools import cache
from pathlib import Path

from asap.core.text import plain
from asap.experiments.megatron.names import READ
from asap.experiments.shell import options

_NAMES = Path(__file__).parent / "megatron_arguments.txt"
_PROGRAM = ".py "
_NESTED = re.compile(r"\$\([^()]*\)")
_NEGATIONS = ("no_", "disable_")
_MOST_LISTED = 6


def arguments_within(command: str) -> str:
    """What follows the program in a command that starts it, which is behind its launcher."""
    return _NESTED.sub("", command).partition(_PROGRAM)[2]


def note_on_foreign(arguments: str, name: str) -> str | None:
    """A note on the arguments of a program that Megatron-LM does not have; ``None`` where it has them all.

    Args:
        arguments: of the program.
        name: of the script.
    """
    said = dict.fromkeys(option.name for option in options(_NESTED.sub("", arguments)))
    foreign = [f"--{key.replace('_', '-')}" for key in said if not _is_known(key)]
    if not foreign:
        return None
    listed = plain(", ".join(foreign[:_MOST_LISTED]), 160) + (", …" if len(foreign) > _MOST_LISTED else "")
    return f"{name} sets what no Megatron-LM has, so that what it changes is not known: {listed}"


def _is_known(key: str) -> bool:
    return any(form in _known() for form in (key, *(key.removeprefix(word) for word in _NEGATIONS)))


@cache
def _known() -> frozenset[str]:
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return READ | {word for line in lines if not line.startswith("#") for word in line.split()}
