"""What programs under FSDP call the settings of a plan (volcengine/verl, ``verl/trainer/config/sft_trainer.yaml``;
okoge-kaz/llm-recipes, ``src/llama_recipes/arguments.py``)."""

from collections.abc import Mapping
from dataclasses import dataclass

PROGRAM = "program_under_fsdp"
"""Among settings: the name of the program that takes them."""


@dataclass(frozen=True)
class Words:
    """The settings of a program; what is ``None`` it does not have.

    Args:
        name: of the program.
        micro_batch: sequences of a device in a microbatch.
        batch: sequences of a step, of all devices.
        recompute: whether layers are computed again.
        offload: whether parameters and optimizer wait in host memory.
        context: GPUs that share a sequence.
        strategy: of sharding, by the names of FSDP; without it all is sharded over all devices.
        node: devices of a node, over which a hybrid strategy shards.
        defaults: of these settings.
        is_option: whether they are written ``--key value``, with switches, or ``key=value``.
    """

    name: str
    micro_batch: str
    batch: str
    recompute: str
    offload: tuple[str, ...]
    context: str | None
    strategy: str | None
    node: str | None
    defaults: Mapping[str, str]
    is_option: bool


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
    is_option=False,
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
    is_option=True,
)
_ALL = {words.name: words for words in (VERL, RECIPES)}


def words_of(settings: Mapping[str, object]) -> Words:
    """The words of the program that takes settings."""
    return _ALL[str(settings[PROGRAM])]
