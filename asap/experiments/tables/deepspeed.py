"""DeepSpeed's configuration: a file (https://www.deepspeed.ai/docs/config-json), what a stack brings along, and the one
that arguments of Megatron-DeepSpeed name, which decides ZeRO, offloading and precision."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import Brought, below_variable, find_brought, find_named, missing
from asap.stacks.deepspeed.stack import OFFLOAD, PRESETS, STAGE
from asap.stacks.megatron.releases import ZERO
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, dotted

_SIGNS, _STRONG, _OWN = (frozenset(spec("deepspeed").names[name]) for name in ("signs", "strong", "own"))
"""Sections: two of the first with one of the second, or one of the third, make a file one of DeepSpeed."""

_HINT = (
    "add deepspeed=FILE.json, or give the script that starts it (accelerate launch, torchrun), or the model's"
    " config.json, --hardware, --batch, --sequence and --plan"
)


def is_deepspeed(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of DeepSpeed."""
    return bool(_OWN & values.keys()) or (bool(_STRONG & values.keys()) and len(_SIGNS & values.keys()) >= 2)


def is_setting(key: str) -> bool:
    """Whether an override is one of DeepSpeed's settings: ``zero_optimization.stage``."""
    return key.partition(".")[0] in _SIGNS


def named_configuration(
    named: Any, path: Path, brought: Brought | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """DeepSpeed's settings by dotted key, of the file that is named, among those that are brought along, or from the
    folder of ``path`` or one above it; of one that a stack brings along what decides a step, with a note where it was
    named as a file.

    Raises:
        ConfigError: none is named, or it is not there or malformed.
    """
    if isinstance(named, dict):
        return dotted(named), ()
    text = named if isinstance(named, str) else ""
    is_file = text.endswith((".json", ".conf"))
    if is_file and (found := find_named(text, path, brought)) is not None:
        return dotted(found.document().values), ()
    folder, name = PurePosixPath(text).parent.name, PurePosixPath(text).name.removeprefix("default-")
    shipped = PRESETS.get(folder or ".", {}).get(name)
    if shipped is not None:
        note = f"{plain(text, 80)} is not there, and taken as the one that the stack brings along"
        return PRESETS["any"] | shipped, (note,) if is_file else ()
    if is_file:
        raise missing("names", text, path, "lay it beside the file")
    reason = "names no DeepSpeed configuration, and how else it is sharded is not read"
    raise ConfigError(reason, where=str(path), hint=_HINT)


_NAMED = "deepspeed_config"
_STAGES = ("0", "1", "2", "3")
_PRECISIONS = ("bf16", "fp16")


def add_configuration(
    settings: StackSettings, files: Brought, path: Path
) -> tuple[StackSettings, frozenset[str], tuple[str, ...]]:
    """The arguments with what the configuration decides, those that only a run can tell, and notes.

    Args:
        settings: arguments of Megatron-DeepSpeed.
        files: that come along with the script, or that it writes.
        path: the script.

    Raises:
        ConfigError: the configuration is malformed.
    """
    named = settings.text(_NAMED)
    if named is None:
        return settings, frozenset(), ()
    made = find_brought(below_variable(named), files) == ""
    found = None if made else find_named(below_variable(named), path, files)
    values = {} if found is None else dotted(found.document().values)
    stage = str(values.get(STAGE, 0)) if found else ""
    if stage not in _STAGES:
        if ZERO in settings:
            return settings, frozenset(), ()
        shown = plain(below_variable(named), 60)
        why = "is not there" if found is None else "leaves it to a run"
        return settings, frozenset((ZERO,)), (f"{shown}, which has the ZeRO stage, {why}",)
    said = {ZERO: stage} | {key: values[key] for key in OFFLOAD.values() if key in values}
    notes = []
    if ZERO in settings and str(settings[ZERO]) != stage:
        notes.append(
            f"--zero-stage is {plain(settings[ZERO], 10)}; stage {stage} of the DeepSpeed configuration is run"
        )
    precision = next((kind for kind in _PRECISIONS if values.get(f"{kind}.enabled") is True), None)
    if precision is not None and not settings.flag(precision):
        said |= {kind: kind == precision for kind in _PRECISIONS}
        notes.append(f"--{precision} is not said; {precision} of the DeepSpeed configuration is run")
    return settings.overridden(said), frozenset(), tuple(notes)
