"""Configurations of DeepSpeed and FSDP that arguments of ms-swift name: its own by their name, others by their file
(modelscope/ms-swift, ``swift/config``)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.experiments.deepspeed.named_configuration import read_named_configuration
from asap.experiments.files.named_file import Brought, below_variable, find_named, missing
from asap.experiments.shell import has_substitution
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.deepspeed.settings import ACCUMULATION, BATCH, MICRO_BATCH, OFFLOAD, STAGE, TENSOR
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import AUTO, RECOMPUTE

DEEPSPEED, _TENSOR_DEGREE = "deepspeed", "deepspeed_autotp_size"
_PRESETS = ("zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload")
_FSDP2: Mapping[str, Any] = {
    OPTION: "full_shard auto_wrap",
    "fsdp_config": {"fsdp_version": 2, "reshard_after_forward": True, "activation_checkpointing": True},
}


def deepspeed_settings(arguments: StackSettings, path: Path, brought: Brought | None) -> dict[str, Any]:
    """DeepSpeed's settings by dotted key, of a file, as a run records them, or by the name of ms-swift's own.

    Raises:
        ConfigError: the file is not there or malformed.
    """
    named = arguments[DEEPSPEED]
    name = str(named).removeprefix("default-").replace("-", "_")
    if name not in _PRESETS:
        return read_named_configuration(below_variable(named) if isinstance(named, str) else named, path, brought)
    stage, _, offload = name.removeprefix("zero").partition("_")
    found: dict[str, Any] = dict.fromkeys((MICRO_BATCH, ACCUMULATION, BATCH, "bf16.enabled", "fp16.enabled"), AUTO)
    found |= {STAGE: int(stage)} | (dict.fromkeys(OFFLOAD.values(), "cpu") if offload else {})
    return found | ({TENSOR: arguments[_TENSOR_DEGREE]} if _TENSOR_DEGREE in arguments else {})


def fsdp_arguments(arguments: StackSettings, path: Path, brought: Brought | None) -> dict[str, Any]:
    """The Trainer's arguments of FSDP that ms-swift's name or file of them stands for; recomputation is FSDP's own.

    Raises:
        ConfigError: the file is not there or malformed.
    """
    named = arguments.get(OPTION)
    if named == "fsdp2":
        return {**_FSDP2, RECOMPUTE: False}
    if not isinstance(named, str) or not (named.endswith(".json") or has_substitution(named)):
        return {}
    found = find_named(below_variable(named), path, brought)
    if found is None:
        raise missing("names the FSDP configuration", named, path, "lay it beside the file")
    values = found.document().values
    recomputes = (values.get("fsdp_config") or {}).get("activation_checkpointing")
    own = {RECOMPUTE: False} if recomputes else {}
    return {key: values[key] for key in (OPTION, "fsdp_config") if key in values} | own
