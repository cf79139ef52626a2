"""Primus's backend Megatron-Bridge: a recipe, the parameters that it takes, and sections of its configuration
(``primus/backends/megatron_bridge/config_utils.py``).

What stands at the top goes to the recipe, which has parameters for degrees, batch and precision; Primus drops what it
has none for. Sections (``model``, ``train``, ``ddp``, …) are laid over what the recipe makes.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.megatron import arguments as megatron
from asap.experiments.megatron.bridge.script import left_to_recipe
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.named_model import read_named_model
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings

VIRTUAL_SIZE = "virtual_pipeline_model_parallel_size"
PARAMETERS = frozenset(spec("megatron-bridge").names["parameters"])
_SECTIONS = ("model", "train", "ddp", "dist", "optimizer")
_RENAMED = {VIRTUAL_SIZE: "num_virtual_stages_per_pipeline_rank"}
_PRECISION, _ADAPTER = "precision_config", "peft"
_READ = PARAMETERS | {"seq_length"}
_OTHER_LAYERS = re.compile(r"mamba|zebra|nemotron_?h|hybrid|vlm?$")
_NONE = ("none", "null", "")
OWN = frozenset((_PRECISION, _ADAPTER, "flavor", "recipe", "hf_path"))


def read_bridge(
    said: dict[str, Any], own: Collection[str], path: Path, overrides: list[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with the settings of a module.

    Raises:
        ConfigError: adapters are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    given = {key: value for key, _, value in (override.partition("=") for override in overrides)}
    said = said | {key: value for key, value in given.items() if key in OWN}
    rest = [override for override in overrides if override.partition("=")[0] not in OWN]
    recipe = str(said.get("recipe") or said.get("flavor") or "")
    if _OTHER_LAYERS.search(recipe):
        reason = f"starts the recipe {plain(recipe, 60)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=str(path))
    _check_trains_all(said, path)
    settings = StackSettings(_arguments(said), str(path))
    if experiment.model is None and said.get("hf_path"):
        model, notes = read_named_model(str(said["hf_path"]))
        experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    unsettled = left_to_recipe(settings, experiment.model)
    found = read_megatron(settings, rest, experiment, BRIDGE, unsettled)
    dropped = sorted(key for key in own if key in megatron.READ and key not in _READ and key not in given)
    note = f"{', '.join(dropped)}: recipes of Megatron-Bridge have no such parameter, and Primus drops it"
    return found.model_copy(update={"notes": (*found.notes, *([note] if dropped else []))})


def _check_trains_all(said: Mapping[str, Any], path: Path) -> None:
    adapter, flavor = said.get(_ADAPTER), str(said.get("flavor") or said.get("stage") or "")
    if adapter is None and ("finetune" in flavor or flavor == "sft"):
        reason = f"does not say {_ADAPTER}, and recipes that fine-tune train adapters by default"
        raise ConfigError(reason, where=str(path), hint=f"add {_ADAPTER}=none where all parameters are trained")
    if adapter is not None and str(adapter).casefold() not in _NONE:
        reason = f"{_ADAPTER}={plain(str(adapter), 20)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains all of them")


def _arguments(said: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the recipe and settings of sections as Megatron-LM's arguments."""
    found = {key: said[key] for key in _READ if key in said}
    for name in _SECTIONS:
        section = said.get(name)
        found |= {k: v for k, v in section.items() if k in megatron.READ} if isinstance(section, dict) else {}
    found = {_RENAMED.get(key, key): value for key, value in found.items()}
    precision = str(said.get(_PRECISION) or "")
    found |= {kind: True for kind in ("bf16", "fp16") if precision.startswith(kind)}
    if "fp4" in precision:
        found["fp4_format"] = "e2m1"
    elif "fp8" in precision:
        found["fp8_format"] = "hybrid"
    return found
