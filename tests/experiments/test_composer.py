"""LLM Foundry under Composer, and OLMo."""

import pytest

from asap.core.errors import ConfigError, UnreadError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import read

__all__ = ["read"]

FOUNDRY = """
variables: {length: 4096}
max_seq_len: ${variables.length}
model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-3.1-8B, use_flash_attention_2: true}
train_loader: {name: finetuning, dataset: {max_seq_len: 1024}}
optimizer: {name: decoupled_lionw, lr: 0.0000005}
global_train_batch_size: 64
device_train_microbatch_size: 2
precision: amp_bf16
fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE, activation_checkpointing: true}
"""
MPT = FOUNDRY.replace(
    "{name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-3.1-8B, use_flash_attention_2: true}",
    "{name: mpt_causal_lm, d_model: 2048, n_heads: 16, n_layers: 24, max_seq_len: 4096, vocab_size: 50368}",
)
OLMO = """
model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, rope: true,
  vocab_size: 100278, embedding_size: 100352, max_sequence_length: 4096, flash_attention: true}
optimizer: {name: adamw}
tokenizer: {identifier: x}
compile: null
global_train_batch_size: 1024
device_train_microbatch_size: 2
precision: amp_bf16
fsdp: {wrapping_strategy: by_block, precision: mixed}
"""


def test_a_configuration_of_llm_foundry(read):
    run = read("sft.yaml", FOUNDRY, hardware="h100-8")
    assert str(run.plan) == "data=8 microbatches=4 remat=full"
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.optimizer, work.attention) == (64, 4096, "lion", "flash")
    assert (run.model.layers, work.zero_stage) == (32, 3)
    whole = read("sft.yaml", FOUNDRY.replace("fsdp_config: {", "other: {"), hardware="h100-8")
    assert str(whole.plan) == "replica=8 microbatches=4 remat=none"
    found = read("sft.yaml", FOUNDRY.replace("microbatch_size: 2", "microbatch_size: auto"), hardware="h100-8")
    assert (found.plan.microbatches, found.workload.global_batch) == (None, 64)
    assert any("device_train_microbatch_size=auto is found by the run" in note for note in found.notes)


def test_a_model_of_its_own_shapes(read):
    run = read("pretrain.yaml", MPT)
    assert (run.model.d_ff, run.model.gated_mlp, run.model.tied_embeddings) == (8192, False, True)
    assert run.model.learned_positions == 4096
    rope = "vocab_size: 50368, attn_config: {rope: true, kv_n_heads: 4}, ffn_config: {ffn_type: mptglu}"
    other = read("pretrain.yaml", MPT.replace("vocab_size: 50368", rope))
    assert (other.model.kv_heads, other.model.gated_mlp, other.model.learned_positions) == (4, True, 0)


def test_a_run_of_mosaicml_has_its_configuration_and_its_devices(read):
    parameters = FOUNDRY.replace("\n", "\n  ")
    text = f"command: composer train.py /mnt/config/parameters.yaml\ncompute: {{gpus: 16}}\nparameters:{parameters}\n"
    assert str(read("mcli.yaml", text).plan) == "data=16 microbatches=2 remat=full"


def test_a_command_over_its_yaml(read, tmp_path):
    (tmp_path / "sft.yaml").write_text(FOUNDRY)
    start = "composer --world_size 16 --node_rank 0 train/train.py sft.yaml max_seq_len=2048 run_name=x"
    run = read("run.sh", f"{start} fsdp_config.activation_checkpointing=false > log\n")
    assert (str(run.plan), run.workload.sequence_length) == ("data=16 microbatches=2 remat=none", 2048)
    with pytest.raises(ConfigError, match=r"starts Composer with gone\.yaml, which is not there"):
        read("run.sh", "composer train.py gone.yaml\n")


def test_experts_of_olmo_are_no_dense_model(read):
    sparse = OLMO.replace("model: {", "model: {block_type: moe, moe_num_experts: 16, moe_top_k: 2, ", 1)
    run = read("olmo.yaml", sparse, hardware="h100-64")
    assert (run.model.experts, run.model.experts_per_token, run.model.expert_d_ff) == (16, 2, run.model.d_ff)
    with pytest.raises(ConfigError, match="moe_interleave is not read"):
        read("olmo.yaml", sparse.replace("moe_top_k: 2", "moe_interleave: true"))


def test_a_configuration_of_olmo_that_is_not_there_is_named(read):
    start = "torchrun --nproc_per_node=8 scripts/train.py configs/mine.yaml --fsdp.sharding_strategy=FULL_SHARD\n"
    with pytest.raises(ConfigError, match=r"starts OLMo with configs/mine\.yaml, which is not there"):
        read("run.sh", start)


def test_a_configuration_of_olmo(read, tmp_path):
    run = read("olmo.yaml", OLMO, hardware="h100-64")
    assert str(run.plan) == "data=64 microbatches=8 remat=none"
    assert (run.model.d_ff, run.model.vocab, run.model.tied_embeddings) == (11008, 100352, False)
    (tmp_path / "olmo.yaml").write_text(OLMO)
    start = "torchrun --nnodes 4 --nproc_per_node=8 scripts/train.py olmo.yaml --device_train_microbatch_size=4"
    hybrid = "--fsdp.sharding_strategy=HYBRID_SHARD --fsdp.hybrid_sharding_num_model_replicas=4"
    started = read("run.sh", f"{start} {hybrid} --activation_checkpointing=whole_layer --save_overwrite\n")
    assert str(started.plan) == "replica=4 data=8 microbatches=8 remat=full"
    partly = read("run.sh", f"{start} --activation_checkpointing=one_in_four\n")
    assert partly.plan.remat is None
    assert any("activation_checkpointing=one_in_four is not modelled" in note for note in partly.notes)
    assert not any("variable whose value" in note for note in partly.notes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("hf_causal_lm", "hf_t5", "trains hf_t5; only decoders"),
        ("max_seq_len: ${", "peft_config: {peft_type: LORA}\nmax_seq_len: ${", "training a part of the parameters"),
        ("max_seq_len: ${", "tp_config: {tensor_parallel_degree: 2}\nmax_seq_len: ${", "tensor parallelism under"),
        ("amp_bf16", "int8", "precision int8 is not read"),
    ],
)
def test_what_is_not_read_says_so(read, old, new, said):
    with pytest.raises(ConfigError, match=said):
        read("sft.yaml", FOUNDRY.replace(old, new))


def test_lines_to_paste(read):
    def line(run, plan: str) -> str:
        return launch_lines(Plan.parse(plan), "fsdp", run.hyperparameters, global_batch=run.workload.global_batch)

    foundry = read("sft.yaml", FOUNDRY, hardware="h100-8")
    assert line(foundry, "replica=8 microbatches=2 remat=none") == (
        "fsdp_config.sharding_strategy=NO_SHARD fsdp_config.activation_checkpointing=false"
        " device_train_microbatch_size=4"
    )
    olmo = read("olmo.yaml", OLMO, hardware="h100-64")
    assert line(olmo, "data=64 microbatches=4 remat=full") == (
        "--activation_checkpointing=whole_layer --device_train_microbatch_size=4"
    )


def test_a_command_that_eval_is_given_is_refused_by_name(read, tmp_path):
    (tmp_path / "sft.yaml").write_text(FOUNDRY)
    script = 'run="composer"\nrun+=" train.py sft.yaml max_seq_len=2048"\neval "${run}"\n'
    with pytest.raises(UnreadError, match="starts its run by eval, which is not read") as caught:
        read("run.sh", script, hardware="h100-8")
    assert "asap resolve -- bash" in (caught.value.hint or "")
    harmless = 'eval "$(conda shell.bash hook)"\ncomposer train.py sft.yaml max_seq_len=2048\n'
    assert read("run.sh", harmless, hardware="h100-8").workload.sequence_length == 2048
