"""How to capture what is missing, in the words of the stack that launches the run."""

from collections.abc import Mapping

from asap.profiles import Gap
from asap.profiles.kpis import NO_PROFILE
from asap.stacks.launchers import Stack
from asap.stacks.megatron.releases import PROFILER, is_of_swift, lacks
from asap.stacks.registry import spec_of

_BY_HAND = "torch.profiler around a few steps for --profile"
_CAPTURES: Mapping[Stack, str] = {
    "megatron": "--profile --use-pytorch-profiler --profile-step-start 10 --profile-step-end 12 for asap's --profile",
    "torchtitan": "profiling.enable_profiling=true for --profile",
    "deepspeed": _BY_HAND,
    "axolotl": _BY_HAND,
    "accelerate": _BY_HAND,
    "fsdp": _BY_HAND,
}
"""Stacks on PyTorch write Kineto traces, which ``--profile`` takes as well.

Megatron-LM: megatron/training/config/common_config.py (ProfilingConfig, which Megatron-Bridge has as well); torchtitan:
config/job_config.py; those with a table say it there."""


def no_profile(stack: Stack | None, settings: Mapping[str, object] | None = None) -> Gap:
    """What a run without a profile lacks, and what its stack can capture, in the version that takes its settings."""
    table = spec_of(stack, settings or {}) if stack else None
    capture = table.capture if table and table.capture else _CAPTURES.get(stack) if stack else None
    if stack == "megatron" and (lacks(settings or {}, PROFILER) or is_of_swift(settings or {})):
        capture = _BY_HAND
    return NO_PROFILE.model_copy(update={"capture": capture}) if capture else NO_PROFILE
