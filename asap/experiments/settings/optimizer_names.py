"""Optimizers as PyTorch's stacks name them: ``paged_adamw_8bit``."""

import re
from collections.abc import Mapping

from asap.core.text import plain

_FAMILY = re.compile(r"adamw|adafactor|adam|lion|muon|sgd")
_WITH_BITS = re.compile(r"adam\w{0,40}?_?(32|8|4)bit$")
_OF_BITS = {"32": "fp32", "8": "int8", "4": "fp4"}
_PAGED = "paged"
_KEY = re.compile(r"(?:^|\.)optim(?:izer)?(?:$|[._](?:name|type|_component_|class_path)$)")


def optimizer_family(name: str | None) -> str:
    """``paged_adamw_8bit`` → ``adamw``, which is the default; a name of no family stays."""
    said = (name or "adamw").casefold()
    found = _FAMILY.search(said)
    return found[0] if found else said


def moments_of_bits(name: str | None) -> dict[str, str]:
    """The precision of Adam's moments as fields of a workload, where the name says one, whatever weights have.

    Wide moments that are paged are left open: how much of them HBM holds, only a run can tell.
    """
    said = (name or "").casefold().replace("_bnb_", "_")
    found = _WITH_BITS.search(said)
    kept = _OF_BITS[found[1]] if found and not (found[1] == "32" and _PAGED in said) else None
    return {"first_moment_precision": kept, "second_moment_precision": kept} if kept else {}


def note_on_paged(settings: Mapping[str, object]) -> tuple[str, ...]:
    """A note that an optimizer moves its state to the host where HBM is full; none where none does."""
    named = [value for key, value in settings.items() if isinstance(value, str) and _KEY.search(str(key))]
    paged = next((name for name in named if _PAGED in name.casefold()), None)
    said = "what HBM has no room for of its state waits in host memory, which is not modelled"
    return (f"optimizer {plain(paged, 60)}: {said}",) if paged else ()
