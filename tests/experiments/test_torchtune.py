"""torchtune: its YAML, and the commands that start a recipe with it."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

FULL = """
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: /tmp/x, max_seq_len: 4096}
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
optimizer: {_component_: torch.optim.AdamW, lr: 0.00002}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
gradient_accumulation_steps: 4
enable_activation_checkpointing: True
compile: True
dtype: bf16
device: cuda
output_dir: /tmp/out
log_dir: ${output_dir}/logs
"""
START = "tune run --nnodes 2 --nproc_per_node 8 full_finetune_distributed --config full.yaml"


def test_a_yaml_alone(read):
    run = read("full.yaml", FULL, hardware="h100-8")
    assert (str(run.plan), run.workload.global_batch) == ("data=8 microbatches=4 remat=full", 64)
    work = run.workload
    assert (work.sequence_length, work.precision, work.weight_precision, work.compiled) == (4096, "bf16", "bf16", True)
    assert (run.model.layers, run.model.vocab) == (32, 128256)


@pytest.mark.parametrize(
    ("builder", "layers"),
    [
        ("qwen3.qwen3_1_7b_instruct", 28),
        ("qwen2_5.qwen2_5_7b_base", 28),
        ("llama2.llama2_13b", 40),
        ("x.unheard", None),
    ],
)
def test_a_model_by_the_name_of_its_builder(read, builder, layers):
    assert read("full.yaml", FULL.replace("llama3_1.llama3_1_8b", builder)).model.layers == layers


def test_a_model_by_its_shapes(read):
    given = "llama2.llama2, vocab_size: 32000, num_layers: 8, num_heads: 8, embed_dim: 512, intermediate_dim: 2048"
    own = read("full.yaml", FULL.replace("llama3_1.llama3_1_8b", given))
    assert (own.model.layers, own.model.kv_heads, own.model.head_dim) == (8, 8, 64)


def test_a_command_over_its_yaml(read, tmp_path):
    (tmp_path / "full.yaml").write_text(FULL)
    run = read("run.sh", f"{START} tensor_parallel_dim=2 data_parallel_replicate_dim=2 batch_size=1 2>&1 | tee log\n")
    assert (str(run.plan), run.workload.global_batch) == ("replica=2 data=4 model=2 microbatches=4 remat=full", 32)
    narrow = read("run.sh", f"{START} optimizer._component_=bitsandbytes.optim.PagedAdamW8bit fsdp_cpu_offload=True\n")
    assert (narrow.workload.first_moment_precision, narrow.plan.offload) == ("int8", ("optimizer", "parameters"))
    one = read("run.sh", "tune run full_finetune_single_device --config full.yaml\n")
    assert (one.hardware.devices, one.workload.global_batch) == (1, 8)
    moved = read("run.sh", f"{START} enable_activation_offloading=True\n")
    assert any("enable_activation_offloading" in note for note in moved.notes)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (START.replace("full_finetune", "lora_finetune"), "lora_finetune_distributed, which does not train all"),
        (START.replace("full.yaml", "llama3_1/8B_full"), "tune cp llama3_1/8B_full"),
        (
            START.replace("full_finetune_distributed", "ours/fit.py"),
            "starts ours/fit.py by tune run, which is no recipe",
        ),
        (
            START.replace("full_finetune", "-m ours.lora_finetune"),
            "lora_finetune_distributed, which does not train all",
        ),
        (f"{START} model._component_=torchtune.models.llama3_1.lora_llama3_1_8b", "training a part of the parameters"),
        (f"{START} loss._component_=torchtune.rlhf.loss.DPOLoss", "preferences, rewards or a teacher"),
        (f"{START} tensor_parallel_dim=3", "not a multiple of tensor_parallel_dim=3"),
    ],
)
def test_what_is_not_read_says_so(read, tmp_path, start, said):
    (tmp_path / "full.yaml").write_text(FULL)
    with pytest.raises(ConfigError, match=said):
        read("run.sh", f"{start}\n")


def test_lines_to_paste(read):
    plan = Plan.parse("data=8 model=2 microbatches=4")
    unsplit = read("full.yaml", FULL, hardware="h100-16").hyperparameters
    assert "with tensor_parallel_plan alone" in (inexpressible(plan, "fsdp", unsplit, 128) or "")
    split = f"{FULL}tensor_parallel_plan: {{_component_: torchtune.models.llama3.base_llama_tp_plan}}\n"
    run = read("full.yaml", split, hardware="h100-16")
    plan = Plan.parse("replica=2 data=4 model=2 microbatches=2 remat=none")
    assert launch_lines(plan, "fsdp", run.hyperparameters, global_batch=128) == (
        "tensor_parallel_dim=2 data_parallel_replicate_dim=2 enable_activation_checkpointing=false batch_size=8"
        " gradient_accumulation_steps=2"
    )


def test_an_optimizer_within_the_backward_pass_goes_without_microbatches(read):
    run = read("full.yaml", FULL.replace("steps: 4", "steps: 1") + "optimizer_in_bwd: True\n", hardware="h100-8")
    changes = {"data=8 microbatches=2": "gradient_accumulation_steps=2 optimizer_in_bwd=false", "data=8": ""}
    for plan, said in changes.items():
        line = launch_lines(Plan.parse(plan), "fsdp", run.hyperparameters, global_batch=16)
        assert " ".join(word for word in line.split() if word[:10] != "batch_size") == said
