"""Recipes of SageMaker HyperPod, and the scripts that start them."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

RECIPE = """
run: {name: ours, model_type: hf}
trainer: {devices: 8, num_nodes: 4, accelerator: gpu, precision: bf16}
use_smp_model: True
distributed_backend: nccl
model:
  model_type: llama_v3
  train_batch_size: 2
  tensor_model_parallel_degree: 2
  expert_model_parallel_degree: 1
  context_parallel_degree: 1
  moe: False
  activation_checkpointing: True
  sharding_strategy: hybrid_shard
  shard_degree: 8
  fp8: False
  max_context_width: 8192
  max_position_embeddings: ${.max_context_width}
  num_hidden_layers: 32
  hidden_size: 4096
  num_attention_heads: 32
  intermediate_size: 14336
  vocab_size: 128256
  num_key_value_heads: 8
  use_flash_attention: True
  hf_model_name_or_path: null
  peft: {peft_type: null}
  precision: ${recipes.trainer.precision}
  optim: {name: adamw}
"""
START = """python3 ${SAGEMAKER_TRAINING_LAUNCHER_DIR}/main.py recipes=training/ours/llama_8b \\
    base_results_dir=$RESULTS recipes.run.name="x" recipes.exp_manager.exp_dir=$EXP_DIR"""


def test_a_recipe(read):
    run = read("recipe.yaml", RECIPE)
    assert str(run.plan) == "replica=2 data=8 model=2 microbatches=1 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision, work.zero_stage) == (32, 8192, "bf16", 3)
    assert (run.model.layers, run.model.head_dim, run.hardware.devices) == (32, 128, 32)
    assert read("recipe.yaml", RECIPE.replace("fp8: False", "fp8: True")).workload.precision == "fp8"
    named = RECIPE.replace("num_hidden_layers: 32", "x: 1").replace("path: null", "path: Qwen/Qwen3-8B")
    assert read("recipe.yaml", named).model.layers == 36


def test_a_script_over_its_recipe(read, tmp_path):
    folder = tmp_path / "recipes_collection" / "recipes" / "training" / "ours"
    folder.mkdir(parents=True)
    (folder / "llama_8b.yaml").write_text(RECIPE)
    run = read("run.sh", f"{START} recipes.model.train_batch_size=1 recipes.trainer.num_nodes=2\n")
    assert (str(run.plan), run.workload.global_batch) == ("data=8 model=2 microbatches=1 remat=full", 8)
    machine = read("run.sh", f"{START} instance_type=p5.48xlarge\n")
    assert (machine.hardware.chip, machine.hardware.devices) == ("h100", 32)
    wider = read("run.sh", f"{START}\n", "model.tensor_model_parallel_degree=4")
    assert wider.plan.degree("model") == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("peft_type: null", "peft_type: lora", "peft_type=lora: training a part"),
        ("moe: False", "moe: True", "experts of SageMaker's model parallelism"),
        ("optim:", "dpo: {enabled: True}\n  optim:", "training on preferences"),
        ("shard_degree: 8", "shard_degree: 3", "not a multiple of model.shard_degree=3"),
    ],
)
def test_what_is_not_read_says_so(read, old, new, said):
    with pytest.raises(ConfigError, match=said):
        read("recipe.yaml", RECIPE.replace(old, new))


def test_a_recipe_that_is_not_there_or_of_another_kind(read, tmp_path):
    with pytest.raises(
        ConfigError, match="the recipe training/ours/llama_8b of SageMaker HyperPod, which is not there"
    ):
        read("run.sh", f"{START}\n")
    folder = tmp_path / "recipes" / "training" / "ours"
    folder.mkdir(parents=True)
    (folder / "llama_8b.yaml").write_text("training_config: {training_args: {train_batch_size: 8}}\n")
    with pytest.raises(ConfigError, match="a recipe of SageMaker HyperPod of a kind that is not read"):
        read("run.sh", f"{START}\n")


def test_lines_to_paste(read):
    run = read("recipe.yaml", RECIPE)
    plan = Plan.parse("data=16 model=2 microbatches=1 remat=none")
    assert launch_lines(plan, "fsdp", run.hyperparameters, global_batch=32) == (
        "model.sharding_strategy=full_shard model.activation_checkpointing=false"
    )
    assert inexpressible(Plan.parse("data=16 model=2 microbatches=2"), "fsdp", run.hyperparameters, 32)
