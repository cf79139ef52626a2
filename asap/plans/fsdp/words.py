"""What programs under FSDP call the settings of a plan.

By the programs' own files: volcengine/verl, ``verl/trainer/config/sft_trainer.yaml``; okoge-kaz/llm-recipes,
``src/llama_recipes/arguments.py``; meta-llama/llama-cookbook, ``configs/training.py`` and ``configs/fsdp.py``;
Lightning-AI/litgpt, ``pretrain.py``, ``finetune/full.py`` and ``args.py``; pytorch/torchtune,
``recipes/full_finetune_distributed.py``; mosaicml/llm-foundry, ``scripts/train/yamls``; allenai/OLMo,
``olmo/config.py``; aws/sagemaker-hyperpod-recipes, ``recipes_collection``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

PROGRAM = "program_under_fsdp"
"""Among settings: the name of the program that takes them."""


@dataclass(frozen=True)
class Words:
    """The settings of a program; what is ``None`` it does not have.

    Args:
        name: of the program.
        micro_batch: sequences of a device in a microbatch.
        batch: sequences of a step, of all devices; without it microbatches are counted.
        accumulation: microbatches of a step; one where neither is said.
        recompute: whether layers are computed again.
        offload: whether parameters and optimizer wait in host memory.
        context: GPUs that share a sequence.
        tensor: GPUs that share each matrix.
        tensor_by: a setting without which matrices cannot be split.
        replicas: groups that keep all parameters each.
        strategy: of sharding, by the names of FSDP; without it all is sharded over all devices.
        node: devices of a node, over which a hybrid strategy shards.
        defaults: of these settings.
        written: ``key=value``, ``--key value``, ``--key=value``, or ``--key value`` with hyphens and switches.
        fixed: those that the program sets itself.
        recomputing: how recomputation is said to be on, and off.
        pythonic: whether a switch is Python's ``True`` or ``False``, and any other word counts as on (Python Fire).
        at_once: switches that the program refuses beside more than one microbatch.
    """

    name: str
    micro_batch: str
    batch: str | None
    recompute: str
    offload: tuple[str, ...]
    context: str | None
    strategy: str | None
    node: str | None
    defaults: Mapping[str, str]
    written: Literal["assigned", "options", "equals", "switches"]
    accumulation: str | None = None
    tensor: str | None = None
    tensor_by: str | None = None
    replicas: str | None = None
    fixed: frozenset[str] = frozenset()
    recomputing: tuple[str, str] = ("true", "false")
    pythonic: bool = False
    at_once: tuple[str, ...] = ()


VERL = Words(
    name="verl",
    micro_batch="data.micro_batch_size_per_gpu",
    batch="data.train_batch_size",
    recompute="model.enable_gradient_checkpointing",
    offload=("model.fsdp_config.cpu_offload", "model.fsdp_config.offload_params"),
    context="ulysses_sequence_parallel_size",
    strategy=None,
    node=None,
    defaults={
        "data.micro_batch_size_per_gpu": "4",
        "data.train_batch_size": "256",
        "data.max_length": "1024",
        "model.enable_gradient_checkpointing": "true",
        "model.fsdp_config.cpu_offload": "false",
        "model.fsdp_config.offload_params": "false",
        "model.fsdp_config.model_dtype": "fp32",
        "model.lora_rank": "0",
        "ulysses_sequence_parallel_size": "1",
    },
    written="assigned",
)
RECIPES = Words(
    name="llm-recipes",
    micro_batch="micro_batch_size",
    batch="global_batch_size",
    recompute="fsdp_activation_checkpointing",
    offload=("fsdp_cpu_offload",),
    context=None,
    strategy="sharding_strategy",
    node="npernode",
    defaults={
        "sharding_strategy": "FULL_SHARD",
        "fsdp_activation_checkpointing": "false",
        "fsdp_cpu_offload": "false",
    },
    written="switches",
)
LLAMA_RECIPES = Words(
    name="llama-recipes",
    micro_batch="batch_size_training",
    batch=None,
    accumulation="gradient_accumulation_steps",
    recompute="fsdp_activation_checkpointing",
    offload=("fsdp_cpu_offload",),
    context=None,
    strategy="sharding_strategy",
    node="sharding_group_size",
    defaults={
        "batch_size_training": "4",
        "gradient_accumulation_steps": "1",
        "sharding_strategy": "FULL_SHARD",
        "fsdp_activation_checkpointing": "true",
        "fsdp_cpu_offload": "false",
    },
    written="options",
    pythonic=True,
)
LITGPT = Words(
    name="LitGPT",
    micro_batch="train.micro_batch_size",
    batch="train.global_batch_size",
    recompute="activation_checkpointing",
    offload=(),
    context=None,
    strategy="sharding_strategy",
    node="devices",
    defaults={
        "train.micro_batch_size": "4",
        "train.global_batch_size": "512",
        "activation_checkpointing": "false",
        "sharding_strategy": "HYBRID_SHARD",
    },
    written="options",
    fixed=frozenset(("activation_checkpointing", "sharding_strategy")),
)
LITGPT_FINETUNE = replace(
    LITGPT,
    name="LitGPT fine-tuning",
    defaults={
        "train.micro_batch_size": "1",
        "train.global_batch_size": "16",
        "activation_checkpointing": "true",
        "sharding_strategy": "FULL_SHARD",
    },
)
TORCHTUNE = Words(
    name="torchtune",
    micro_batch="batch_size",
    batch=None,
    accumulation="gradient_accumulation_steps",
    recompute="enable_activation_checkpointing",
    offload=("fsdp_cpu_offload",),
    context="context_parallel_dim",
    tensor="tensor_parallel_dim",
    tensor_by="tensor_parallel_plan",
    replicas="data_parallel_replicate_dim",
    strategy=None,
    node=None,
    defaults={
        "gradient_accumulation_steps": "1",
        "enable_activation_checkpointing": "false",
        "fsdp_cpu_offload": "false",
        "context_parallel_dim": "1",
        "tensor_parallel_dim": "1",
        "data_parallel_replicate_dim": "1",
    },
    written="assigned",
    at_once=("optimizer_in_bwd",),
)
FOUNDRY = Words(
    name="LLM Foundry",
    micro_batch="device_train_microbatch_size",
    batch="global_train_batch_size",
    recompute="fsdp_config.activation_checkpointing",
    offload=(),
    context=None,
    strategy="fsdp_config.sharding_strategy",
    node="nproc",
    defaults={"fsdp_config.sharding_strategy": "FULL_SHARD", "fsdp_config.activation_checkpointing": "false"},
    written="assigned",
)
OLMO = Words(
    name="OLMo",
    micro_batch="device_train_microbatch_size",
    batch="global_train_batch_size",
    recompute="activation_checkpointing",
    offload=(),
    context=None,
    strategy="fsdp.sharding_strategy",
    node="nproc_per_node",
    defaults={"fsdp.sharding_strategy": "FULL_SHARD", "activation_checkpointing": "null"},
    written="equals",
    recomputing=("whole_layer", "null"),
)
HYPERPOD = Words(
    name="SageMaker HyperPod",
    micro_batch="model.train_batch_size",
    batch=None,
    recompute="model.activation_checkpointing",
    offload=(),
    context="model.context_parallel_degree",
    tensor="model.tensor_model_parallel_degree",
    tensor_by="use_smp_model",
    strategy="model.sharding_strategy",
    node="model.shard_degree",
    defaults={
        "model.activation_checkpointing": "false",
        "model.context_parallel_degree": "1",
        "model.tensor_model_parallel_degree": "1",
        "model.sharding_strategy": "full_shard",
    },
    written="assigned",
)
_EVERY = (VERL, RECIPES, LLAMA_RECIPES, LITGPT, LITGPT_FINETUNE, TORCHTUNE, FOUNDRY, OLMO, HYPERPOD)
PROGRAMS = {words.name: words for words in _EVERY}
"""By name."""


def words_of(settings: Mapping[str, object]) -> Words:
    """The words of the program that takes settings."""
    return PROGRAMS[str(settings[PROGRAM])]
