"""Optimizers as PyTorch's stacks name them: ``paged_adamw_8bit``."""

import re

_FAMILY = re.compile(r"adamw|adafactor|adam|lion|muon|sgd")
_NARROW = re.compile(r"adam\w*?_?([48])bit$")
_OF_BITS = {"8": "int8", "4": "fp4"}


def optimizer_family(name: str | None) -> str:
    """``paged_adamw_8bit`` → ``adamw``, which is the default; a name of no family stays."""
    said = (name or "adamw").casefold()
    found = _FAMILY.search(said)
    return found[0] if found else said


def narrow_moments(name: str | None) -> dict[str, str]:
    """The precision of Adam's moments as fields of a workload, where the name says one."""
    said = (name or "").casefold().replace("_bnb_", "_")
    found = _NARROW.search(said)
    kept = _OF_BITS[found[1]] if found else None
    return {"first_moment_precision": kept, "second_moment_precision": kept} if kept else {}
