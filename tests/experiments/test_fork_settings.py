"""Settings of forks that by their name decide the model, the batch or what is trained."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 4096
"""
NANOTRON = """
model:
  dtype: bfloat16
  model_config: {is_llama_config: true, hidden_size: 1024, intermediate_size: 4096, num_attention_heads: 8,
    num_key_value_heads: 8, num_hidden_layers: 12, vocab_size: 50257, max_position_embeddings: 2048}
optimizer: {zero_stage: 0}
parallelism: {dp: 4, tp: 1, pp: 1}
tokens: {micro_batch_size: 1, sequence_length: 2048, batch_accumulation_per_replica: 1}
"""


def test_batches_that_a_fork_of_torchtitan_accumulates_are_read_by_their_name(read):
    run = read("run.toml", f"{TITAN}gradient_accumulation_steps = 6\n", hardware="h100-8")
    assert (run.workload.global_batch, run.plan.microbatches) == (96, 6)
    assert any("gradient_accumulation_steps=6, which no torchtitan has" in note for note in run.notes)
    assert read("run.toml", f"{TITAN}gradient_accumulation_steps = 1\n", hardware="h100-8").plan.microbatches == 1


def test_a_vocabulary_of_a_forks_own_is_asked_for(read):
    text = f"{TITAN}vocab_size = 512\n"
    run = read("run.toml", text, hardware="h100-8")
    assert (run.model.layers, run.model.vocab) == (32, None)
    assert any("training.vocab_size=512" in note and "add model.vocab=" in note for note in run.notes)
    told = read("run.toml", text, "model.vocab=512", hardware="h100-8")
    assert told.model.vocab == 512
    assert not any("the vocabulary is unknown" in note for note in told.notes)


def test_sections_that_no_nanotron_has_are_named(read):
    run = read("run.yaml", f"{NANOTRON}linear_memory: {{segment: 512}}\n")
    assert any("no nanotron has it" in note and note.endswith("linear_memory") for note in run.notes)
    assert not any("no nanotron has it" in note for note in read("run.yaml", NANOTRON).notes)


@pytest.mark.parametrize("said", ["--moe-num-experts 16", "--n-routed-experts=16", "--experts-num 16"])
def test_experts_of_a_fork_of_megatron_leave_the_model_open(read, said):
    script = MEGATRON.replace("--bf16", f"--bf16 {said}")
    run = read("train.sh", script)
    assert run.model.layers is None
    assert any("the model is unknown: it hangs on num_experts" in note for note in run.notes)
    assert read("train.sh", script, "num_experts=16", "moe_router_topk=2").model.experts == 16


def test_one_expert_of_a_fork_is_none(read):
    assert read("train.sh", MEGATRON.replace("--bf16", "--bf16 --moe-num-experts 1")).model.layers == 32


def test_adapters_by_arguments_of_a_programs_own_are_refused(read):
    options = "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 --fsdp full_shard"
    for own in ("--lora_path_prefix /x/adapters", "--adapter_name_or_path /x"):
        with pytest.raises(ConfigError, match="training a part of the parameters is not modelled"):
            read("go.sh", f"torchrun --nproc_per_node 8 train.py {options} {own}\n")


def test_an_option_of_fsdp_without_a_strategy_shards_all_or_what_the_environment_says(read):
    start = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 --bf16"
    start += " --per_device_train_batch_size 1 --fsdp auto_wrap\n"
    assert read("go.sh", start).plan.degree("data") == 8
    assert read("go.sh", f"export FSDP_SHARDING_STRATEGY=1\n{start}").plan.degree("data") == 8
    assert read("go.sh", f"export FSDP_SHARDING_STRATEGY=3\n{start}").plan.degree("replica") == 8


UNSURE = """
NODES=$(scontrol show hostnames | wc -l)
if [ $NODES -gt 1 ]; then
  LAUNCH="srun torchrun --nnodes $NODES --nproc_per_node 8"
else
  LAUNCH="torchrun --nproc_per_node 8"
fi
$LAUNCH train.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 --per_device_train_batch_size 1 --fsdp full_shard
"""


def test_a_start_that_hangs_on_what_only_a_run_can_tell_is_asked_by_its_variable(read):
    with pytest.raises(ConfigError, match=r"sure to run: it hangs on NODES, .* \(add NODES=…; or give the log"):
        read("go.sh", UNSURE, hardware="h100-8")
    assert read("go.sh", UNSURE, "NODES=1", hardware="h100-8").plan.degree("data") == 8
    sure = "DAY=$(date)\nif [ $DAY = x ]; then\n  export RUN=$DAY\nfi\ntorchrun -m ours.train --steps 4\n"
    with pytest.raises(ConfigError, match=r"it starts ours\.train, whose settings are not known"):
        read("go.sh", sure)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("go.py", "import nemo_run as run\nrun.run(run.Script(path='x.py'))\n", "launcher of NeMo-Run"),
    ],
)
def test_what_is_not_read_is_refused_by_name(read, name, text, said):
    with pytest.raises(ConfigError, match=said):
        read(name, text)
