"""An experiment from a recipe of NeMo 2, on the command line of ``nemo llm pretrain``.

What it does not say is the recipe's, and unknown here.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.python_literals import CLASS, UNKNOWN
from asap.experiments.megatron.bridge.model import check_is_decoder
from asap.experiments.megatron.bridge.script import left_to_recipe, model_of
from asap.experiments.megatron.changed_shapes import read_changed_model
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.recipe_tables import PARAMETERS, recipe_settings
from asap.experiments.megatron.yaml_dialects import NEMO
from asap.experiments.settings.stack_settings import StackSettings
from asap.stacks.megatron.sections import RECIPE_WORDS

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
_WHOLE = (None, "none", "None")
_DENSE = re.compile(r"nemotron_?3(?=_?\d+b|config)", re.IGNORECASE)
"""In names of NeMo: a decoder, unlike the Nemotron 3 of Megatron-Bridge."""
_LENGTH = re.compile(r"_\d+k$")
_PRETRAIN = "pretrain"


def read_recipe(said: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a recipe says.

    Args:
        said: settings by section, ``UNKNOWN`` where only a run can tell; the recipe's model and task under ``CLASS``:
            ``llama3_8b.pretrain``.
        path: the file that says it.
        overrides: ``key=value`` of the user, in Megatron-LM's names.
        experiment: what is known besides.

    Raises:
        ConfigError: adapters or another model than a decoder are trained, or a value is of the wrong kind.
        UsageError: an override is not ``key=value``.
    """
    recipe, _, task = str(said[CLASS]).rpartition(".")
    _check_trains_all(said, task, path)
    check_is_decoder((_DENSE.sub("", recipe),), str(path))
    given, notes = experiment.model, list[str]()
    if given is None:
        given, more = read_changed_model(model_of(_LENGTH.sub("", recipe), None), _at(said, "model", "config"))
        notes += more
    every = _settings(said)
    if task == _PRETRAIN and said.get(_PERFORMANCE, False) is False:
        base, more = recipe_settings(NEMO, recipe)
        notes += more
        if "seq_length" in base and "seq_length" not in _at(said, "data") and "seq_length" in every:
            every, more = _of_two_lengths(every, base["seq_length"])
            notes += more
        every = {**base, **every}
    if "use_distributed_optimizer" not in every:
        every["use_distributed_optimizer"] = True
        notes.append("replicas share the optimizer's state, as in NeMo's recipes")
    of_model = _at(said, "model", "config").get("fp8") not in (None, False)
    if of_model and every.get("bf16") is True and "fp8_format" not in every:
        notes.append(
            "fp8 of the model's configuration has no effect: NeMo sets it as trainer.plugins says, to bf16 here"
        )
    found = {key: value for key, value in every.items() if value is not UNKNOWN}
    settings = StackSettings(found | {RECIPE_WORDS: "command"}, str(path))
    open_ = {key for key, value in every.items() if value is UNKNOWN}
    left = left_to_recipe(settings, given) - every.keys()
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


def _check_trains_all(said: Mapping[str, Any], task: str, path: Path) -> None:
    """Raise ConfigError where a recipe trains adapters, as one of fine-tuning does unless told otherwise."""
    scheme = said.get("peft_scheme", None if task == _PRETRAIN else "lora")
    if scheme in _WHOLE and all(said.get(key) in _WHOLE for key in ("peft", "model_transform")):
        return
    reason = "trains adapters: training a part of the parameters is not modelled"
    raise ConfigError(reason, where=str(path), hint="give a run with peft_scheme=None, which trains all of them")


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron-LM's arguments, ``UNKNOWN`` where only a run can tell."""
    strategy, data, config = _at(said, "trainer", "strategy"), _at(said, "data"), _at(said, "model", "config")
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


def _devices(said: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes and the GPUs of each, eight by the default of recipes for several nodes."""
    trainer = _at(said, "trainer")
    nodes = trainer.get("num_nodes", said.get("num_nodes"))
    of_recipe = 8 if isinstance(nodes, int) and nodes > 1 else None
    each = trainer.get("devices", said.get("num_gpus_per_node", of_recipe))
    both = isinstance(nodes, int) and isinstance(each, int)
    return {"nnodes": nodes, "nproc_per_node": each} if both else {}


def _optimizer(said: Mapping[str, Any]) -> dict[str, Any]:
    config = _at(said, "optim", "config")
    found = {key: config[key] for key in _OPTIMIZER if key in config}
    shards = config.get("use_distributed_optimizer")
    return found | ({} if shards is None else {"use_distributed_optimizer": shards})


def _precision(said: Mapping[str, Any]) -> dict[str, Any]:
    """Of Lightning's plugin, by its name or its fields: ``trainer.plugins=bf16_with_fp8_mixed``."""
    plugin = _at(said, "trainer").get("plugins")
    fields = plugin if isinstance(plugin, Mapping) else {}
    words = str(fields.get("precision", "") if fields else plugin or "")
    if not words:
        return _gradients(fields)
    fp8 = "fp8" in words or fields.get("fp8") not in (None, False)
    found: dict[str, Any] = {"bf16": "bf16" in words, "fp16": "bf16" not in words and "16" in words}
    found |= {"fp8_format": "hybrid"} if fp8 else {}
    return found | _gradients(fields)


def _gradients(plugin: Mapping[str, Any]) -> dict[str, Any]:
    """Gradients that are not reduced in fp32 have the precision of the parameters, bf16."""
    reduces = plugin.get("grad_reduce_in_fp32")
    return {} if reduces is None else {"grad_reduce_in_fp32" if reduces else "grad_reduce_in_bf16": True}


def _at(said: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    node: Any = said
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}
