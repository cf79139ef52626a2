"""The DeepSpeed configuration that arguments of Megatron-DeepSpeed name, which decides ZeRO, offloading and precision
(deepspeedai/DeepSpeed, ``runtime/config.py``)."""

from pathlib import Path

from asap.core.text import plain
from asap.experiments.files.documents import Brought, below_variable, find_brought, find_named
from asap.stacks.deepspeed.stack import OFFLOAD, STAGE
from asap.stacks.megatron.releases import ZERO
from asap.stacks.stack_settings import StackSettings, dotted

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
