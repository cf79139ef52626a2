"""An experiment from a recipe of NeMo 2, in Python or on the command line of ``nemo llm pretrain``.

What it does not say is the recipe's, and unknown here; a program without a recipe has NeMo's defaults.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.launch.python.defaults import notes_on
from asap.experiments.launch.python.objects import ARGUMENTS, CLASS, UNKNOWN, handed_over
from asap.experiments.megatron.bridge.model import check_is_decoder
from asap.experiments.megatron.bridge.script import left_to_recipe, model_of
from asap.experiments.megatron.changed_shapes import read_changed_model
from asap.experiments.megatron.nemo.recipe import Recipe, find_recipe
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.recipe_tables import PARAMETERS, recipe_settings
from asap.experiments.megatron.yaml_dialects import NEMO
from asap.experiments.settings.stack_settings import StackSettings
from asap.models import Architecture
from asap.plans.megatron.recipe_lines import RECIPE_WORDS

_STRATEGY = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "sequence_parallel",
    "expert_model_parallel_size", "expert_tensor_parallel_size",
)  # fmt: skip
_PERFORMANCE = "performance_mode"
_VIRTUAL = "num_virtual_stages_per_pipeline_rank"
_MODEL_SETTINGS = (
    "recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules", "cp_comm_type",
    "moe_expert_capacity_factor", "moe_pad_expert_input_to_capacity",
)  # fmt: skip
_DDP = ("use_distributed_optimizer", "data_parallel_sharding_strategy", "num_distributed_optimizer_instances")
_OPTIMIZER = (
    "optimizer_cpu_offload", "optimizer_offload_fraction", "use_precision_aware_optimizer", "exp_avg_dtype",
    "exp_avg_sq_dtype", "main_grads_dtype",
)  # fmt: skip
_CONFIG = re.compile(r"(?:^|\.)(?P<family>\w+?)_?Config(?P<size>\w+)$")
_WHOLE = (None, "none", "None")
_DENSE = re.compile(r"nemotron_?3(?=_?\d+b|config)", re.IGNORECASE)
"""In names of NeMo: a decoder, unlike the Nemotron 3 of Megatron-Bridge."""
_FAMILY = re.compile(r"(\D+?)(\d?)(\d)?$")


def read_nemo_program(text: str, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the recipe that a program runs; raises like :func:`read_recipe`."""
    recipe = find_recipe(text, str(path))
    if recipe is None:
        hint = "give the model as model=NAME, and --hardware, --batch, --sequence and --plan, without --config"
        raise ConfigError("runs no recipe of NeMo 2 that can be told without running it", where=str(path), hint=hint)
    read = read_recipe(recipe, path, overrides, experiment)
    note = f"{path.name} runs its recipe in a loop; the first round is read"
    return read.model_copy(update={"notes": (*read.notes, *([note] if recipe.looped else []), *notes_on(recipe.taken))})


def read_recipe(
    recipe: Recipe, path: Path, overrides: Iterable[str], experiment: Experiment, *, of_command: bool = False
) -> Experiment:
    """``experiment`` with what a recipe says.

    Args:
        recipe: what is run.
        path: the file that says it.
        overrides: ``key=value`` of the user, in Megatron-LM's names.
        experiment: what is known besides.
        of_command: the settings are those of a command, and no statements.

    Raises:
        ConfigError: adapters or another model than a decoder are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    said = recipe.said
    _check_trains_all(recipe, path)
    made_by = (place.get(CLASS) for place in (said, _at(said, "model"), _config_of(said)))
    check_is_decoder((_DENSE.sub("", str(name or "")) for name in made_by), str(path))
    given, notes = experiment.model, list(handed_over(said))
    if given is None:
        given, more = _model(recipe)
        notes += more
    every = _settings(said)
    if recipe.named is not None and recipe.named["task"] == "pretrain" and said.get(_PERFORMANCE, False) is False:
        base, more = recipe_settings(NEMO, recipe.named["model"], _decided_elsewhere(said))
        notes += more
        if "seq_length" in base and "seq_length" not in _at(said, "data") and "seq_length" in every:
            every, more = _of_two_lengths(every, base["seq_length"])
            notes += more
        every = {**base, **every}
    if recipe.named and "use_distributed_optimizer" not in every:
        every["use_distributed_optimizer"] = True
        notes.append("replicas share the optimizer's state, as in NeMo's recipes")
    if _config_of(said).get("fp8") not in (None, False) and every.get("bf16") is True and "fp8_format" not in every:
        notes.append(
            "fp8 of the model's configuration has no effect: NeMo sets it as trainer.plugins says, to bf16 here"
        )
    found = {key: value for key, value in every.items() if value is not UNKNOWN}
    settings = StackSettings(found | {RECIPE_WORDS: "command" if of_command else "python"}, str(path))
    open_ = {key for key, value in every.items() if value is UNKNOWN}
    left = left_to_recipe(settings, given) - every.keys() if recipe.named else frozenset[str]()
    experiment = experiment.model_copy(update={"model": given, "notes": (*experiment.notes, *notes)})
    return read_megatron(settings, overrides, experiment, NEMO, left | open_)


def _of_two_lengths(every: dict[str, Any], of_data: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a program that changes the length of its model and not that of the recipe's data."""
    if every["seq_length"] in (UNKNOWN, of_data):
        return every, ()
    note = (
        f"the model's configuration says sequences of {plain(every['seq_length'], 20)}, the recipe's data are of "
        f"{of_data}: add seq_length=…"
    )
    return {**every, "seq_length": UNKNOWN}, (note,)


def _check_trains_all(recipe: Recipe, path: Path) -> None:
    """Raise ConfigError where a recipe trains adapters, as one of fine-tuning does unless told otherwise."""
    finetunes = recipe.named is not None and recipe.named["task"] == "finetune"
    scheme = recipe.said.get("peft_scheme", "lora" if finetunes else None)
    if scheme in _WHOLE and all(recipe.said.get(key) in _WHOLE for key in ("peft", "model_transform")):
        return
    reason = "trains adapters: training a part of the parameters is not modelled"
    raise ConfigError(reason, where=str(path), hint="give a run with peft_scheme=None, which trains all of them")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, ``UNKNOWN`` where only a run can tell."""
    strategy, data, config = _at(said, "trainer", "strategy"), _at(said, "data"), _config_of(said)
    found = {argument: said[key] for key, argument in PARAMETERS.items() if key in said}
    found |= {key: strategy[key] for key in _STRATEGY if key in strategy}
    if (stages := strategy.get("virtual_pipeline_model_parallel_size", "unsaid")) != "unsaid":
        found[_VIRTUAL] = stages if stages is not None else 1
    sharding = strategy.get("fsdp")
    found["use_megatron_fsdp"] = sharding if sharding is UNKNOWN else sharding == "megatron"
    found["use_torch_fsdp2"] = sharding == "pytorch"
    found |= {key: data[key] for key in ("global_batch_size", "micro_batch_size") if key in data}
    if (length := data.get("seq_length", config.get("seq_length"))) is not None:
        found["seq_length"] = length
    found |= {key: config[key] for key in _MODEL_SETTINGS if key in config}
    ddp = _at(strategy, "ddp")
    found |= {key: ddp[key] for key in _DDP if key in ddp}
    found |= _optimizer(said) | _precision(said) | _devices(said)
    kept = {key: value for key, value in found.items() if value is not None or key == "recompute_granularity"}
    return {key: UNKNOWN if isinstance(value, Mapping) else value for key, value in kept.items()}


def _decided_elsewhere(said: Mapping[str, Any]) -> tuple[str, ...]:
    """What a recipe does not decide, as a program puts other objects in the place of its own."""
    trainer = _at(said, "trainer")
    of_data = ("global_batch_size", "micro_batch_size", "seq_length") if _is_replaced(said, "data") else ()
    replaced = _is_replaced(said, "trainer") or _is_replaced(trainer, "strategy")
    return (*of_data, *(_STRATEGY if replaced else ()), *((_VIRTUAL,) if replaced else ()))


def _is_replaced(place: Mapping[str, Any], key: str) -> bool:
    """Whether a program puts another object there, or what only a run can tell."""
    return place.get(key) is UNKNOWN or CLASS in _at(place, key)


def _devices(said: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes and the GPUs of each, eight by the default of recipes for several nodes."""
    trainer = _at(said, "trainer")
    nodes = trainer.get("num_nodes", said.get("num_nodes", 1 if CLASS in trainer else None))
    of_recipe = 8 if CLASS not in trainer and isinstance(nodes, int) and nodes > 1 else None
    each = trainer.get("devices", said.get("num_gpus_per_node", of_recipe))
    both = isinstance(nodes, int) and isinstance(each, int)
    return {"nnodes": nodes, "nproc_per_node": each} if both else {}


def _optimizer(said: Mapping[str, Any]) -> dict[str, Any]:
    config = _at(said, "optim", "config")
    found = {key: config[key] for key in _OPTIMIZER if key in config}
    shards = config.get("use_distributed_optimizer")
    return found | ({} if shards is None else {"use_distributed_optimizer": shards})


def _precision(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of Lightning's plugin, by its name and its fields: ``bf16_with_fp8_mixed()``."""
    trainer = _at(said, "trainer")
    if "plugins" not in trainer:
        return {}
    plugin = trainer["plugins"]
    plugin = plugin[0] if isinstance(plugin, list) and len(plugin) == 1 else plugin
    if not isinstance(plugin, dict) or (CLASS not in plugin and "precision" not in plugin):
        return _gradients(_at(trainer, "plugins"))
    words = " ".join(map(str, (plugin.get(CLASS), plugin.get("precision"), *plugin.get(ARGUMENTS, ()))))
    fp8 = "fp8" in words or plugin.get("fp8") not in (None, False)
    found: dict[str, Any] = {"bf16": "bf16" in words, "fp16": "bf16" not in words and "16" in words}
    found |= {"fp8_format": "hybrid"} if fp8 else {}
    return found | _gradients(plugin)


def _gradients(plugin: Mapping[str, Any]) -> dict[str, Any]:
    """Gradients that are not reduced in fp32 have the precision of the parameters, bf16."""
    reduces = plugin.get("grad_reduce_in_fp32")
    return {} if reduces is None else {"grad_reduce_in_fp32" if reduces else "grad_reduce_in_bf16": True}


def _config_of(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of the model: ``model.config``, or the first argument of its class."""
    model = _at(said, "model")
    first = next(iter(model.get(ARGUMENTS, ())), None)
    return _at(model, "config") or (first if isinstance(first, dict) else {})


def _model(recipe: Recipe) -> tuple[Architecture, tuple[str, ...]]:
    """The model that a recipe, or the class of a configuration, is named after, with the shapes that are changed."""
    config = _config_of(recipe.said)
    named = _CONFIG.search(str(config.get(CLASS)))
    if named is not None:
        family = _FAMILY.match(named["family"].casefold())
        version = ".".join(part for part in (family[2], family[3]) if part) if family else ""
        name = f"{family[1] if family else ''}{version}-{named['size']}".replace("_", "-")
    elif recipe.named is not None and not recipe.chosen and CLASS not in _at(recipe.said, "model"):
        name = model_of(re.sub(r"_\d+k$", "", recipe.named["model"]), None)
    else:
        return Architecture(), ("the model is not said by name: add model=NAME",)
    return read_changed_model(name, config)


def _at(said: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    node: Any = said
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}
