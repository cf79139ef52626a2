"""DeepSpeed's configurations that arguments name, and those that stacks bring along."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named, missing
from asap.experiments.settings.remarks import note_on_unmodelled
from asap.stacks.deepspeed.settings import ACCUMULATION, BATCH, MICRO_BATCH, STAGE
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted
from asap.stacks.trainer.arguments import AUTO

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


def read_named_configuration(named: Any, path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """DeepSpeed's settings by dotted key, of the file that is named, among those that are brought along, or from the
    folder of ``path`` or one above it; of one that a stack brings along what decides a step.

    Raises:
        ConfigError: none is named, or it is not there or malformed.
    """
    if isinstance(named, dict):
        return dotted(named)
    if not isinstance(named, str) or not named.endswith((".json", ".conf")):
        reason = "names no DeepSpeed configuration, and how else it is sharded is not read"
        hint = (
            "add deepspeed=FILE.json, or give the script that starts it (llamafactory-cli, torchrun), or the model's"
            " config.json, --hardware, --batch, --sequence and --plan"
        )
        raise ConfigError(reason, where=str(path), hint=hint)
    found = find_named(named, path, brought)
    if found is not None:
        return dotted(found.document().values)
    if (shipped := shipped_configuration(named)) is not None:
        return shipped
    raise missing("names", named, path, "lay it beside the file")


def with_note_on_shipped(experiment: Experiment, named: Any, path: Path, brought: Brought | None = None) -> Experiment:
    """``experiment`` with a note where the configuration that is named was taken for one that a stack brings along."""
    if not isinstance(named, str) or shipped_configuration(named) is None or find_named(named, path, brought):
        return experiment
    return experiment.model_copy(update={"notes": (*experiment.notes, note_on_shipped(named))})


_ZERO = "zero_optimization"
_DEVICES = (f"{_ZERO}.offload_optimizer.device", f"{_ZERO}.offload_param.device")
_DISK = "nvme"
_COMPRESSED = ("onebit", "zeroone")
"""How the names of optimizers begin that exchange gradients of a bit."""


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """Notes that name them; none where all are as DeepSpeed has them."""
    notes = list(note_on_unmodelled(settings, spec("deepspeed").unmodelled))
    if disk := [key for key in _DEVICES if str(settings.get(key)).casefold() == _DISK]:
        notes.append(f"{' and '.join(disk)} is {_DISK}, taken as the memory of the host")
    if str(settings.get("optimizer.type")).casefold().startswith(_COMPRESSED):
        notes.append("optimizer.type compresses what is exchanged; taken as exchanged whole")
    return tuple(notes)
