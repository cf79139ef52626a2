"""A plan as arguments of DeepSpeed-Chat (microsoft/DeepSpeedExamples, ``applications/DeepSpeed-Chat/training``), whose
programs make DeepSpeed's configuration of them (``dschat/utils/ds_utils.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.deepspeed.settings import ACCUMULATION, BATCH, MICRO_BATCH, STAGE, zero_stage
from asap.plans.deepspeed.trainer import RECOMPUTE, SECTION

MARK = f"{SECTION}.zero_stage"
"""Among a run's settings: its stage is an argument."""
_OFFLOADED = ("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device")
_MADE = (MICRO_BATCH, ACCUMULATION, BATCH)
"""Settings that the programs make of arguments which are on record as well."""
_ARGUMENTS = f"{SECTION}."


def is_deepspeed_chat(settings: Mapping[str, object]) -> bool:
    """Whether DeepSpeed-Chat's arguments say DeepSpeed's configuration."""
    return MARK in settings


def chat_options(changed: Mapping[str, object], current: Mapping[str, object]) -> str:
    """Changed settings as options of the command; those to leave out follow as a comment.

    Args:
        changed: by dotted key.
        current: the settings of the run.

    Raises:
        PlanError: it has no argument for one of them.
    """
    rest = {key: value for key, value in changed.items() if key not in (STAGE, *_OFFLOADED, *_MADE)}
    unsaid = [key for key in rest if not key.startswith(_ARGUMENTS)]
    if unsaid:
        raise PlanError(f"DeepSpeed-Chat has no argument for {plain(', '.join(unsaid), 80)}")
    devices = [changed[key] for key in _OFFLOADED if key in changed]
    both = zero_stage({STAGE: current[MARK], **changed}) == 3
    if len(set(devices)) > 1 or (both and len(devices) == 1):
        raise PlanError("DeepSpeed-Chat offloads parameters and optimizer together")
    flags = {"offload": devices[0] == "cpu"} if devices else {}
    values = {key.removeprefix(_ARGUMENTS): value for key, value in rest.items()}
    flags |= {RECOMPUTE: bool(values.pop(RECOMPUTE))} if RECOMPUTE in values else {}
    stage = [f"--zero_stage {changed[STAGE]}"] if STAGE in changed else []
    options = [*stage, *(f"--{key} {value}" for key, value in values.items())]
    options += [f"--{flag}" for flag, on in flags.items() if on]
    off = [f"--{flag}" for flag, on in flags.items() if not on]
    comment = [f"# without {' '.join(off)}"] if off else []
    return "  ".join(text for text in (" ".join(options), *comment) if text)
