"""What ms-swift's arguments say besides Megatron-LM's: models by name, and how experts are split."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asap.models import find_architecture
from asap.plans.plan import Plan
from asap.stacks.megatron import reading as megatron
from asap.stacks.megatron.degrees import EXPERT, EXPERT_TENSOR, TENSOR
from asap.stacks.megatron.releases import JOINT, OF_SWIFT
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

_SPLIT = "experts_taken_whole"
_CONVERTED = re.compile(r"[-_.]mcore\b.*", re.IGNORECASE)


def prepared(settings: Mapping[str, Any], devices: int | None = None) -> Mapping[str, object]:
    """The arguments with ms-swift's defaults, under Megatron-LM's names."""
    table, core = spec("megatron-swift"), spec("megatron").defaults
    named = find_architecture(_named(settings) or "")
    if named is not None and not named.is_moe:  # a run records how experts would be split, whatever the model
        settings = {key: value for key, value in settings.items() if key != EXPERT_TENSOR}
    own = {key: value for key, value in table.defaults.items() if key not in {*settings, *core}}
    if settings.get(EXPERT_TENSOR) is None and "1" not in (str(settings.get(key, 1)) for key in (EXPERT, TENSOR)):
        own |= {EXPERT_TENSOR: 1, _SPLIT: True}
    return megatron.prepared({**settings, **own, JOINT: "_", OF_SWIFT: True}, devices)


def model_of(settings: StackSettings) -> tuple[dict[str, Any] | str, tuple[str, ...]]:
    """Shapes where they are said, or the name of what is trained or whose weights are loaded."""
    name = _named(settings)
    return megatron.model_of(settings) if name is None or "num_layers" in settings else (name, ())


def _named(settings: Mapping[str, Any]) -> str | None:
    said = (str(settings[key]) for key in spec("megatron-swift").names["models"] if settings.get(key))
    return next((_CONVERTED.sub("", name.rstrip("/")) for name in said), None)


def notes_on(settings: StackSettings, plan: Plan | None, layers: int | None) -> Iterator[str]:
    """Those of Megatron-LM, and that experts are taken as whole."""
    yield from megatron.notes_on(settings, plan, layers)
    if _SPLIT in settings:
        yield f"{EXPERT_TENSOR} is not said, and taken as 1: before ms-swift 3.9 it was {TENSOR}; add it as key=value"
