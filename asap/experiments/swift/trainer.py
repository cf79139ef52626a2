"""Arguments of ``swift sft`` and ``swift pt``: the Trainer's, with the names, defaults and configurations of ms-swift
(modelscope/ms-swift, ``swift/llm/argument/train_args.py``, ``swift/config``).
"""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.accelerate.program import of_trainer
from asap.experiments.accelerate.reader import is_setting as is_accelerate_setting
from asap.experiments.accelerate.reader import read_started, split_overrides
from asap.experiments.deepspeed.reader import PRESETS, preset, read_named_configuration
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, below_variable, find_named, missing, open_variable
from asap.experiments.huggingface_model import name_at_end
from asap.experiments.shell import has_substitution
from asap.experiments.training_program import check_arguments, refuse
from asap.stacks.accelerate.stack import CONTEXT, KIND, OPTION, SIZES
from asap.stacks.deepspeed.stack import IN_FILE, SEQUENCE, TENSOR
from asap.stacks.registry import abstract
from asap.stacks.spec import Word
from asap.stacks.stack_settings import StackSettings
from asap.stacks.trainer.arguments import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

DEEPSPEED, _TENSOR_DEGREE = "deepspeed", "deepspeed_autotp_size"
_PRESETS = PRESETS["swift"]
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
    return preset(**_PRESETS[name]) | ({TENSOR: arguments[_TENSOR_DEGREE]} if _TENSOR_DEGREE in arguments else {})


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


_TABLE = abstract("swift")
_TUNERS = _TABLE.refused[0].keys
"""What is trained, as versions 4, 3 and 2 call it."""
_FROZEN = ("freeze_parameters", "freeze_parameters_regex")
_BESIDE_DECODER = re.compile(r"vit|vis|audio|align|project|merger|^(?:\[\]|none|null)?$", re.IGNORECASE)
"""In names of parameters of encoders that are trained beside a decoder."""


def check_trains_decoder(arguments: StackSettings, default: str) -> None:
    """Raise ConfigError where a part of the parameters is trained, or another model than a decoder of tokens.

    Args:
        arguments: by name.
        default: what is trained where no argument says it.
    """
    said = any(key in arguments for key in _TUNERS)
    refuse(_TABLE, arguments if said else arguments.overridden({_TUNERS[0]: default}))
    if [word for key in _FROZEN for word in arguments.words(key) if not _BESIDE_DECODER.search(word)]:
        reason = "freezes parameters: training a part of them is not modelled"
        raise ConfigError(reason, where=arguments.where(), hint="give a run that trains all of them")


_WORDS = (_TABLE.batch.micro, _TABLE.model.name, _TABLE.workload["weight_precision"])
_RENAMED = {key: word.keys[0] for word in _WORDS if isinstance(word, Word) for key in word.keys[1:]}
"""What version 2 called otherwise."""
_OWN = {*_TABLE.by_code, *_RENAMED}
_DEFAULTS = {key: _TABLE.defaults[key] for key in (TRAINER_MICRO_BATCH, RECOMPUTE)}
_OF_ADAPTERS = ("lora_rank",)
"""Recorded of any run; what is trained is said by name."""
_BATCH = 16
"""Sequences that a step has at least, where accumulation is not said."""
_FILES = (DEEPSPEED, OPTION)
"""Arguments that name a configuration, of which what follows a variable says enough."""
_HALF = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16"}
_UNSAID_TYPE = "torch_dtype is not said, and taken as bf16: the model's config.json decides it"


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments, or of DeepSpeed's settings."""
    return key in _OWN or is_accelerate_setting(key)


def read_trainer(
    said: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    brought: Brought | None = None,
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        said: by name.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.
        brought: files that come along with it.

    Raises:
        ConfigError: not all parameters are trained on tokens, a value of the wrong kind, or a file that is named is
            not there.
        UsageError: an override is not ``key=value``.
    """
    own, more, rest = split_overrides(overrides)
    kept = [override for override in rest if override.partition("=")[0] not in _OWN]
    more |= {key: value for key, _, value in (one.partition("=") for one in rest if one not in kept)}
    stated = {_RENAMED.get(key, key): value for key, value in {**said, **more}.items() if value is not None}
    if (named := stated.get("model")) and (name := name_at_end(str(named))):
        stated["model"] = name
    _check_files_are_said(stated, path)
    unsaid = frozenset(key for key, value in stated.items() if has_substitution(str(value)) and key not in _FILES)
    stated = _with_defaults({key: value for key, value in stated.items() if key not in unsaid}, unsaid, experiment)
    arguments = StackSettings(stated, str(path))
    check_trains_decoder(arguments, "lora")
    check_arguments({key: value for key, value in stated.items() if key not in (SEQUENCE, *_OF_ADAPTERS)}, path)
    if DEEPSPEED in arguments:
        settings: dict[str, Any] = {KIND: "DEEPSPEED", IN_FILE: deepspeed_settings(arguments, path, brought)}
    else:
        stated = {OPTION: "", **arguments, **fsdp_arguments(arguments, path, brought)}
        shared = stated.pop(SEQUENCE, 1)  # GPUs that share a sequence are context parallelism
        settings = of_trainer(stated, path, brought or {}) | own
        settings |= {f"{SIZES}.{SIZES}_{CONTEXT}": shared} if str(shared) != "1" else {}
    stated = {key: value for key, value in stated.items() if key not in _OF_ADAPTERS}
    read = read_started(settings, stated, path, experiment, overrides=kept, unsaid=unsaid, brought=brought)
    if read.workload.context_parallel is not None:
        workload = read.workload.model_copy(update={"context_parallel": "ulysses"})
        read = read.model_copy(update={"workload": workload})
    return read if {"torch_dtype", "dtype"} & said.keys() else read.knowing(_UNSAID_TYPE)


def _check_files_are_said(stated: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where a variable holds the argument that shards the model."""
    for key in _FILES:
        if has_substitution(below_variable(said := str(stated.get(key, "")))) and not said.endswith(".json"):
            reason = f"sets {key} by a variable whose value is not said"
            raise ConfigError(reason, where=str(path), hint=f"add {open_variable(said) or key}=…")


def _with_defaults(stated: Mapping[str, Any], unsaid: frozenset[str], experiment: Experiment) -> dict[str, Any]:
    """Arguments with ms-swift's defaults; mixed precision goes by the type that the model is loaded as."""
    loaded = str(stated.get("torch_dtype", "bf16")).casefold()
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in unsaid}
    if not {"bf16", "fp16"} & stated.keys():
        defaults[_HALF.get(loaded, "bf16")] = loaded in _HALF or loaded == "auto"
    whole = {**defaults, **stated}
    devices, each = experiment.hardware.devices, str(whole.get(TRAINER_MICRO_BATCH, ""))
    if TRAINER_ACCUMULATION not in {*whole, *unsaid} and devices and each.isdecimal() and int(each):
        whole[TRAINER_ACCUMULATION] = max(1, math.ceil(_BATCH / int(each) / devices))
    return whole
