"""LitGPT: its YAML, and the commands that take it."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

FULL = """
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-3B
precision: bf16-true
devices: 8
num_nodes: 2
train: {global_batch_size: 128, micro_batch_size: 2, max_seq_length: 1024, epochs: 2}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 0.0001}}
"""
PRETRAIN = """
model_name: tiny-llama-1.1b
model_config:
precision: bf16-mixed
train: {global_batch_size: 256, micro_batch_size: 4, max_seq_length: 2048, tie_embeddings: false}
devices: auto
"""
SHAPES = """{name: own, n_layer: 12, n_embd: 768, n_head: 12, n_query_groups: 4, intermediate_size: 2048,
  vocab_size: 32000, mlp_class_name: LLaMAMLP, parallel_residual: false}"""


def test_fine_tuning_shards_and_recomputes_all(read):
    run = read("full.yaml", FULL)
    assert str(run.plan) == "data=16 microbatches=4 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.weight_precision) == (128, 1024, "bf16")
    assert (run.model.layers, run.model.tied_embeddings, work.zero_stage) == (28, False, 3)
    assert any(note == "taken as the configuration of litgpt finetune_full" for note in run.notes)


def test_pretraining_shards_within_a_node_and_recomputes_nothing(read):
    assert read("pretrain.yaml", PRETRAIN).plan is None
    run = read("pretrain.yaml", PRETRAIN, "num_nodes=2", hardware="h100-16")
    assert str(run.plan) == "replica=2 data=8 microbatches=4 remat=none"
    assert (run.workload.compiled, run.workload.weight_precision) == (True, None)


def test_a_command_over_its_yaml(read, tmp_path):
    (tmp_path / "full.yaml").write_text(FULL)
    script = (
        "srun litgpt finetune_full Qwen/Qwen3-8B --config full.yaml --train.micro_batch_size=4 --num_nodes 1 > log\n"
    )
    run = read("run.sh", script)
    assert (str(run.plan), run.model.d_model) == ("data=8 microbatches=4 remat=full", 4096)
    own = "python -m litgpt pretrain --model_name Llama-3.2-1B --devices 4 --train.global_batch_size 32\n"
    assert str(read("run.sh", own).plan) == "data=4 microbatches=2 remat=none"
    one = read("run.sh", "litgpt finetune_full Llama-3.2-1B --devices 1\n")
    assert (str(one.plan), one.workload.global_batch) == ("microbatches=16 remat=none", 16)


def test_a_model_by_its_shapes(read):
    run = read("own.yaml", PRETRAIN.replace("model_config:", f"model_config: {SHAPES}"), hardware="h100-8")
    assert (run.model.kv_heads, run.model.head_dim, run.model.vocab) == (4, 64, 32256)
    assert (run.model.gated_mlp, run.model.parallel_block) == (True, False)
    some = read("own.yaml", PRETRAIN.replace("model_config:", "model_config: {name: Llama-3.2-1B, n_layer: 3}"))
    assert (some.model.layers, some.model.d_model, some.model.heads) == (3, 4096, 32)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("litgpt finetune google/gemma-2b --devices 2\n", "finetune: training a part of the parameters"),
        ("litgpt finetune lora google/gemma-2b\n", "finetune_lora: training a part"),
        ("litgpt finetune_full google/gemma-2b --strategy ours --devices 2\n", "sets what no LitGPT has.*strategy"),
        ("litgpt finetune_full google/gemma-2b --config gone.yaml\n", "gone.yaml, which is not there"),
        ("litgpt pretrain_on_mix Llama-3.2-1B --devices 2\n", "starts pretrain_on_mix, which no LitGPT has"),
        ("litgpt pretrain Llama-3.2-1B --precision int8-training --devices 2\n", "precision int8-training is not read"),
    ],
)
def test_what_is_not_read_says_so(read, text, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", text)


def test_a_setting_of_anothers_own_is_named(read):
    run = read("run.sh", "litgpt pretrain Llama-3.2-1B --devices 4 --train.sequence 512 --train.max_norm 1\n")
    assert any(note.startswith("no LitGPT has train.sequence:") for note in run.notes)


def test_a_yaml_of_adapters_is_none(read):
    with pytest.raises(ConfigError, match="lora_r: training a part"):
        read("lora.yaml", f"{FULL}lora_r: 8\n")


def test_lines_to_paste(read):
    run = read("full.yaml", FULL)
    fewer = launch_lines(Plan.parse("data=16 microbatches=2"), "fsdp", run.hyperparameters, global_batch=128)
    assert fewer == "--train.micro_batch_size 4"
    for plan in ("data=16 remat=none", "replica=16", "data=8 model=2", "data=16 offload=optimizer+parameters"):
        assert inexpressible(Plan.parse(plan), "fsdp", run.hyperparameters, 128), plan
