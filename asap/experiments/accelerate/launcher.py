"""Options of a command line, and those of Accelerate's own command (huggingface/accelerate, ``commands/launch.py``)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from asap.experiments.shell import options
from asap.stacks.accelerate import options as inline
from asap.stacks.accelerate import settings as accelerate

KINDS = {"use_fsdp": "FSDP", "use_deepspeed": "DEEPSPEED", "multi_gpu": "MULTI_GPU"}
_OF_DEEPSPEED = frozenset(
    word.partition(".")[2] for word in (*inline.OF_DEEPSPEED.values(), inline.IN_FILE) if word.startswith(inline.CONFIG)
)
_NOT = "no_"
_VARIABLE = re.compile(r"\$\{?\w+(?:\[[@*]\])?\}?", re.ASCII)


def said(text: str) -> dict[str, Any]:
    """Options by name; several words as a text, a switch as true, ``--no_packing`` as a false ``packing``."""
    found: dict[str, Any] = {}
    for option in options(text):
        negated = not option.words and option.name.startswith(_NOT)
        name = option.name.removeprefix(_NOT) if negated else option.name
        found[name] = " ".join(_value(option.words)) if option.words else not negated
    return found


def _value(words: Sequence[str]) -> Sequence[str]:
    """The words of a value, without variables after it that hold further options: ``--lr 1e-5 $EXTRA``."""
    return [word for place, word in enumerate(words) if not place or not _VARIABLE.fullmatch(word)]


def of_command(known: Mapping[str, Any]) -> dict[str, Any]:
    """Options of Accelerate's own command as settings by dotted key, which win over its file."""
    found: dict[str, Any] = {
        key: known[key] for key in (accelerate.PROCESSES, accelerate.MACHINES, "mixed_precision") if key in known
    }
    if kind := next((kind for option, kind in KINDS.items() if known.get(option)), None):
        found[accelerate.KIND] = kind
    for key, value in known.items():
        if key.startswith("fsdp_"):
            found[f"{accelerate.FSDP}.{key}"] = value
        elif key.startswith(accelerate.SIZES):
            found[f"{accelerate.SIZES}.{key}"] = value
        elif key in _OF_DEEPSPEED:
            found[f"{inline.CONFIG}.{key}"] = value
    return found
