"""An experiment from a Python program of Megatron-Bridge.

What it does not say is its recipe's, as far as it is known by its name, else unknown.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.launch.python.defaults import notes_on
from asap.experiments.launch.python.objects import CLASS, UNKNOWN, handed_over
from asap.experiments.megatron import arguments as megatron
from asap.experiments.megatron.bridge.model import read_model
from asap.experiments.megatron.bridge.precision import precision_of
from asap.experiments.megatron.bridge.program import CHOSEN, CONTAINER, TAKEN, recipe_of, trained_configuration
from asap.experiments.megatron.bridge.program import VARIABLE as CALLED
from asap.experiments.megatron.bridge.script import left_to_recipe
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.recipe_tables import PARAMETERS as EARLIER
from asap.experiments.megatron.recipe_tables import recipe_settings
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.settings.stack_settings import StackSettings
from asap.plans.megatron.pipeline_layout import LAYOUT
from asap.plans.megatron.program_lines import VARIABLE
from asap.plans.megatron.sections import PARAMETERS, VIRTUAL_SIZE

_VIRTUAL = "num_virtual_stages_per_pipeline_rank"
_RENAMED = {VIRTUAL_SIZE: _VIRTUAL, "num_moe_experts": "num_experts"}
_SECTIONS = ("model", "train", "ddp", "dist", "optimizer", "comm_overlap")
_LENGTHS = ("seq_length", "sequence_length")
_SHARDS_STATE = "use_distributed_optimizer"
_OPTIMIZER = "optimizer"
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32", "uint8": "fp8"}
_OF_SHAPE = frozenset(
    [
        "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
        "vocab_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "position_embedding_type",
    ]
)  # fmt: skip
_OF_MODEL = frozenset(
    [
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "sequence_parallel",
        "expert_model_parallel_size", "expert_tensor_parallel_size", _VIRTUAL, "recompute_granularity",
        "recompute_method", "recompute_num_layers", "recompute_modules", "seq_length", LAYOUT,
    ]
)  # fmt: skip
"""What goes with the model that a recipe makes, where a program puts another one in its place."""
_ADAPTERS = ("lora", "dora", "peft")


def is_setting(key: str) -> bool:
    """Whether an override is of Megatron-LM's arguments, or names a recipe of the file."""
    return megatron.is_argument(key) or key == CHOSEN.rstrip("=")


def read_bridge_program(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the configuration that a program trains.

    Raises:
        ConfigError: adapters are trained, a value is of the wrong kind, or only a run can tell what is trained.
        UsageError: an override is not ``key=value``.
    """
    overrides = list(overrides)
    chosen = [override.removeprefix(CHOSEN) for override in overrides if override.startswith(CHOSEN)]
    rest = [override for override in overrides if not override.startswith(CHOSEN)]
    said = trained_configuration(text, path, chosen[-1] if chosen else None)
    read = read_recipe(said, path, rest, experiment, {VARIABLE: said.get(CALLED, "cfg")})
    return read.model_copy(update={"notes": (*read.notes, *notes_on(said.get(TAKEN, ())))})


def read_recipe(
    said: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    words: Mapping[str, Any] | None = None,
) -> Experiment:
    """``experiment`` with a configuration.

    Args:
        said: by section, ``UNKNOWN`` where only a run can tell; what made it, such as a recipe, under ``CLASS``.
        path: the file that says it.
        overrides: ``key=value`` of the user, in Megatron-LM's names.
        experiment: what is known besides.
        words: how plans are written back, among the settings on record.

    Raises:
        ConfigError: adapters are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    _check_trains_all(said, path)
    notes = handed_over(said)
    model = experiment.model
    if model is None:
        model, more = read_model(said, str(path))
        notes += more
    every = _settings(said)
    recipe = recipe_of(said)
    of_recipe = recipe != CONTAINER
    if of_recipe:
        base, more = recipe_settings(BRIDGE, recipe, _OF_MODEL if CLASS in _section(said, "model") else ())
        every = {**base, **every}
        notes += more
    found = {key: value for key, value in every.items() if value is not UNKNOWN}
    settings = StackSettings({**found, **(words or {})}, str(path))
    open_ = {key for key, value in every.items() if value is UNKNOWN}
    if of_recipe:
        open_ |= _left_open(settings, said, model) - every.keys()
        if not {_SHARDS_STATE, "use_megatron_fsdp"} & every.keys():
            notes += (
                f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true or false",
            )
    if every.get(LAYOUT) is UNKNOWN:
        notes += (f"{LAYOUT} is not read: stages are taken as equal",)
    experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    return read_megatron(settings, overrides, experiment, BRIDGE, frozenset(open_))


def _left_open(settings: StackSettings, said: Mapping[str, Any], model: Any) -> set[str]:
    """What a recipe decides, and is not known; a model that a program puts in its place has the library's defaults."""
    left = set(left_to_recipe(settings, model))
    if CLASS in _section(said, "model"):
        left &= {"bf16", "use_megatron_fsdp", _OPTIMIZER}
    return left | {key for key in ("global_batch_size",) if key not in settings}


def _check_trains_all(said: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained, as by a recipe of fine-tuning unless told otherwise."""
    recipe = recipe_of(said)
    parts = re.split(r"[._]", recipe)
    named = any(kind in parts for kind in _ADAPTERS)
    scheme = said.get("peft", "said" if named or "finetune" in parts else None)
    if scheme is None or (isinstance(scheme, str) and scheme.casefold() in ("none", "")):
        return
    kind = scheme.get(CLASS, "said") if isinstance(scheme, dict) else scheme if isinstance(scheme, str) else "said"
    reason = f"trains adapters ({plain(kind, 40)}): training a part of the parameters is not modelled"
    if kind == "said":
        reason = f"{plain(recipe, 60)} trains adapters unless peft is None, and training a part is not modelled"
    raise ConfigError(reason, where=str(path), hint="give a run that trains all parameters")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, ``UNKNOWN`` where only a run can tell."""
    found = {argument: said[key] for key, argument in EARLIER.items() if key in said}
    found |= {_RENAMED.get(key, key): value for key, value in said.items() if key in PARAMETERS}
    for name in _SECTIONS:
        if said.get(name) is UNKNOWN:
            found |= dict.fromkeys(_decided_in(name), UNKNOWN)
        section = {_RENAMED.get(key, key): value for key, value in _section(said, name).items()}
        found |= {key: value for key, value in section.items() if key in megatron.READ - _OF_SHAPE}
    if found.get(_VIRTUAL, 0) is None:
        found[_VIRTUAL] = 1
    dataset = _section(said, "dataset")
    lengths = [place.get(key) for place in (_section(said, "model"), dataset, said) for key in _LENGTHS if key in place]
    if lengths := [length for length in lengths if length is not None]:
        found["seq_length"] = lengths[0]
    found |= precision_of(said)
    made_by = str(_section(said, _OPTIMIZER).get(CLASS))
    if family := next((family for family in ("adam", "muon") if family in made_by), None):
        found[_OPTIMIZER] = family
    kept = {key: value for key, value in found.items() if value is not None or key == "recompute_granularity"}
    return {key: _plain(value) for key, value in kept.items()}


def _decided_in(section: str) -> tuple[str, ...]:
    """What a section decides that may be anything."""
    return {
        "model": ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
                  "recompute_granularity", "seq_length"),
        "train": ("global_batch_size", "micro_batch_size"),
        "ddp": ("use_megatron_fsdp",),
        "optimizer": (_OPTIMIZER,),
    }.get(section, ())  # fmt: skip


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
