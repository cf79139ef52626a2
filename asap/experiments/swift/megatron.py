"""Arguments of ``megatron sft`` and ``megatron pt``: Megatron-LM's, with ms-swift's defaults and the model by its name
(table ``megatron-swift``)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.experiments.experiment import Experiment
from asap.experiments.megatron.reader import is_argument, read_megatron, read_words
from asap.experiments.named_model import name_at_end, read_named_model
from asap.experiments.shell import has_substitution
from asap.experiments.swift.trainer import check_trains_decoder
from asap.stacks.megatron.degrees import EXPERT, EXPERT_TENSOR, TENSOR
from asap.stacks.megatron.releases import JOINT, OF_SWIFT
from asap.stacks.megatron.workload import CORE
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, overriding

_SEQUENCE = "seq_length"
_CONVERTED = re.compile(r"[-_.]mcore\b.*", re.IGNORECASE)
_TYPES = {"float16": "fp16", "fp16": "fp16", "float32": None, "fp32": None}
_UNSAID_SPLIT = f"{EXPERT_TENSOR} is not said, and taken as 1: before ms-swift 3.9 it was {TENSOR}; add it as key=value"


def is_setting(key: str) -> bool:
    """Whether an override is one of the arguments."""
    return key in spec("megatron-swift").names["lengths"] or is_argument(key)


def read_megatron_swift(
    said: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what the arguments say.

    Args:
        said: by name.
        path: the file that says them.
        overrides: ``key=value`` of the user.
        experiment: what is known besides, with the processes that are started.

    Raises:
        ConfigError: not all parameters are trained on tokens, or a value of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    stated = {key: value for key, value in {**said, **overriding(overrides)}.items() if value is not None}
    unsaid = frozenset(key for key, value in stated.items() if has_substitution(str(value)))
    arguments = StackSettings({key: value for key, value in stated.items() if key not in unsaid}, str(path))
    check_trains_decoder(arguments, "full")
    experiment = _with_model(stated, experiment)
    settings, notes = _settings(arguments, unsaid)
    if EXPERT_TENSOR not in stated and _has_split_experts(arguments, experiment):
        settings, notes = settings.overridden({EXPERT_TENSOR: 1}), (*notes, _UNSAID_SPLIT)
    unsettled = unsaid & read_words()
    if unsaid & {*spec("megatron-swift").names["lengths"]}:
        settings = settings.overridden({_SEQUENCE: None})
    read = read_megatron(settings, (), experiment, CORE, unsettled)
    left = [f"set by a variable whose value is not said: {', '.join(sorted(unsettled))}"] if unsettled else []
    return read.model_copy(update={"notes": (*read.notes, *notes, *left)})


def _has_split_experts(arguments: StackSettings, experiment: Experiment) -> bool:
    """Whether there are experts beside tensor parallelism."""
    has = str(arguments.get(EXPERT, 1)) != "1" or (experiment.model is not None and experiment.model.is_moe)
    return has and str(arguments.get(TENSOR, 1)) != "1"


def _settings(arguments: StackSettings, unsaid: frozenset[str]) -> tuple[StackSettings, tuple[str, ...]]:
    """The arguments with defaults, under Megatron-LM's names, and notes."""
    table, core = spec("megatron-swift"), spec("megatron").defaults
    said = {*arguments, *unsaid, *core}
    own: dict[str, Any] = {key: value for key, value in table.defaults.items() if key not in said}
    if not {"bf16", "fp16"} & arguments.keys():
        precision = _TYPES.get(str(arguments.get("torch_dtype")).casefold(), "bf16")
        own |= {precision: True} if precision else {}
    length = next((arguments[key] for key in table.names["lengths"] if key in arguments), None)
    if _SEQUENCE not in arguments and length is not None:
        own[_SEQUENCE] = length
    cut = not arguments.flag("packing") and length is not None
    notes = (f"sequences are cut at {length} tokens (max_length); all are taken as that long",) if cut else ()
    return arguments.overridden({**own, JOINT: "_", OF_SWIFT: True}), notes


def _with_model(stated: Mapping[str, Any], experiment: Experiment) -> Experiment:
    """``experiment`` with the model that is trained or whose weights are loaded, where none is said."""
    models = spec("megatron-swift").names["models"]
    name = next((name_at_end(str(stated[key])) for key in models if stated.get(key)), None)
    if name is None or experiment.model is not None or "num_layers" in stated:
        return experiment
    model, notes = read_named_model(_CONVERTED.sub("", name.rstrip("/")))
    return experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
