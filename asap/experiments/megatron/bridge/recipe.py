"""A recipe of Megatron-Bridge with what a command or a YAML lays over it.

What is not said is the recipe's, as far as it is known by its name, else unknown.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.python_literals import CLASS, UNKNOWN
from asap.experiments.megatron import arguments as megatron
from asap.experiments.megatron.bridge.model import read_model
from asap.experiments.megatron.bridge.precision import precision_of
from asap.experiments.megatron.bridge.script import left_to_recipe
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.recipe_tables import PARAMETERS as EARLIER
from asap.experiments.megatron.recipe_tables import recipe_settings
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.settings.stack_settings import StackSettings
from asap.stacks.megatron.sections import PARAMETERS, VIRTUAL_SIZE
from asap.stacks.megatron.stages import LAYOUT

_VIRTUAL = "num_virtual_stages_per_pipeline_rank"
_RENAMED = {VIRTUAL_SIZE: _VIRTUAL, "num_moe_experts": "num_experts"}
_SECTIONS = ("model", "train", "ddp", "dist", "optimizer", "comm_overlap")
_LENGTHS = ("seq_length", "sequence_length")
_SHARDS_STATE = "use_distributed_optimizer"
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "uint8": "fp8"}
_OF_SHAPE = frozenset(
    [
        "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
        "vocab_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "position_embedding_type",
    ]
)  # fmt: skip
_ADAPTERS = ("lora", "dora", "peft")


def read_recipe(
    said: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
) -> Experiment:
    """``experiment`` with a configuration.

    Args:
        said: by section, ``UNKNOWN`` where only a run can tell; the recipe that it is laid over under ``CLASS``.
        path: the file that says it.
        overrides: ``key=value`` of the user, in Megatron-LM's names.
        experiment: what is known besides.

    Raises:
        ConfigError: adapters are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    _check_trains_all(said, path)
    notes: tuple[str, ...] = ()
    model, recipe = experiment.model, str(said[CLASS])
    if model is None:
        model, notes = read_model(said, str(path))
    base, more = recipe_settings(recipe)
    every = {**base, **_settings(said)}
    notes += more
    settings = StackSettings({key: value for key, value in every.items() if value is not UNKNOWN}, str(path))
    open_ = {key for key, value in every.items() if value is UNKNOWN}
    left = left_to_recipe(settings, model) | {key for key in ("global_batch_size",) if key not in settings}
    open_ |= left - every.keys()
    if not {_SHARDS_STATE, "use_megatron_fsdp"} & every.keys():
        notes += (f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true or false",)
    if every.get(LAYOUT) is UNKNOWN:
        notes += (f"{LAYOUT} is not read: stages are taken as equal",)
    experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    return read_megatron(settings, overrides, experiment, BRIDGE, frozenset(open_))


def _check_trains_all(said: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained, as by a recipe of fine-tuning unless told otherwise."""
    recipe = str(said[CLASS])
    parts = re.split(r"[._]", recipe)
    named = any(kind in parts for kind in _ADAPTERS)
    scheme = said.get("peft", "said" if named or "finetune" in parts else None)
    if scheme is None or (isinstance(scheme, str) and scheme.casefold() in ("none", "")):
        return
    kind = scheme if isinstance(scheme, str) else "said"
    reason = f"trains adapters ({plain(kind, 40)}): training a part of the parameters is not modelled"
    if kind == "said":
        reason = f"{plain(recipe, 60)} trains adapters unless peft is None, and training a part is not modelled"
    raise ConfigError(reason, where=str(path), hint="give a run that trains all parameters")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, ``UNKNOWN`` where only a run can tell."""
    found = {argument: said[key] for key, argument in EARLIER.items() if key in said}
    found |= {_RENAMED.get(key, key): value for key, value in said.items() if key in PARAMETERS}
    for name in _SECTIONS:
        section = {_RENAMED.get(key, key): value for key, value in _section(said, name).items()}
        found |= {key: value for key, value in section.items() if key in megatron.READ - _OF_SHAPE}
    if found.get(_VIRTUAL, 0) is None:
        found[_VIRTUAL] = 1
    dataset = _section(said, "dataset")
    lengths = [place.get(key) for place in (_section(said, "model"), dataset, said) for key in _LENGTHS if key in place]
    if lengths := [length for length in lengths if length is not None]:
        found["seq_length"] = lengths[0]
    found |= precision_of(said)
    kept = {key: value for key, value in found.items() if value is not None or key == "recompute_granularity"}
    return {key: _plain(value) for key, value in kept.items()}


def _plain(value: Any) -> Any:
    """A value of YAML: a type of numbers by its short name, a list of words as it is."""
    if isinstance(value, str):
        return _DTYPES.get(value, value)
    if isinstance(value, list):
        return value if all(isinstance(item, str) for item in value) else UNKNOWN
    return UNKNOWN if isinstance(value, dict) else value


def _section(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}
