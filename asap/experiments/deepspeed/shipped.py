"""DeepSpeed configurations that stacks bring along, and that others name without having them: ``examples/deepspeed`` of
LLaMA-Factory (commit c17fc30f), ``deepspeed_configs`` of Axolotl (commit 067b021c)."""

import re
from pathlib import PurePosixPath
from typing import Any

from asap.core.text import plain
from asap.stacks.deepspeed.settings import ACCUMULATION, BATCH, MICRO_BATCH, STAGE
from asap.stacks.deepspeed.trainer import AUTO

_FACTORY = re.compile(r"ds_z(?P<stage>[023])(?P<offload>_offload)?_config\.json")
_AXOLOTL = {
    "zero1.json": (1, ()),
    "zero2.json": (2, ("optimizer",)),
    "zero3.json": (3, ()),
    "zero3_bf16.json": (3, ()),
    "zero3_bf16_cpuoffload_all.json": (3, ("optimizer", "param")),
    "zero3_bf16_cpuoffload_params.json": (3, ("param",)),
}
"""The ZeRO stage, and what is offloaded."""
_OPEN = (MICRO_BATCH, ACCUMULATION, BATCH, "bf16.enabled", "fp16.enabled")


def shipped_configuration(named: str) -> dict[str, Any] | None:
    """What decides a step in the configuration of that path, by dotted key; ``None`` where no stack brings it along."""
    path = PurePosixPath(named)
    if path.parent.name == "deepspeed_configs" and path.name in _AXOLOTL:
        stage, offloaded = _AXOLOTL[path.name]
        return _settings(stage, offloaded, "bf16" in path.name)
    found = _FACTORY.fullmatch(path.name) if path.parent.name == "deepspeed" else None
    if found is None:
        return None
    stage = int(found["stage"])
    return _settings(stage, ("optimizer", "param")[: stage - 1] if found["offload"] else (), False)


def note_on_shipped(named: str) -> str:
    """That a file is not there, and was taken for the stack's own."""
    return f"{plain(named, 80)} is not there, and taken as the one that the stack brings along"


def _settings(stage: int, offloaded: tuple[str, ...], bf16: bool) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(_OPEN, AUTO) | {STAGE: stage}
    found |= {f"zero_optimization.offload_{what}.device": "cpu" for what in offloaded}
    if bf16:
        found["bf16.enabled"] = True
        del found["fp16.enabled"]
    return found
