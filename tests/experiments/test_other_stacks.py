"""Configurations of other stacks: read by what they are, or told what to give instead."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.models.parameters import count_parameters
from asap.plans import Plan
from asap.plans.launchers import launch_lines

LLAMA3_8B = 8.03e9

MEGATRON = """#!/bin/bash
export NCCL_IB_TIMEOUT=19
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-8}   # of the cluster
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
TP=${1:-4}
FSDP=${FSDP:-0}
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope
    --swiglu --untie-embeddings-and-output-weights --vocab-size 128256
)
if [[ "$FSDP" == "1" ]]; then
    EXTRA="--use-megatron-fsdp"
    MODEL_ARGS+=( --use-megatron-fsdp )
else
    MODEL_ARGS+=( --use-distributed-optimizer )
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES pretrain_gpt.py ${MODEL_ARGS[@]} \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 --sequence-parallel \\
    --micro-batch-size 2 --global-batch-size 256 --bf16 --recompute-granularity full
"""

NEMO = """
trainer: {num_nodes: 8, devices: 8, precision: bf16}
exp_manager: {name: llama}
model:
  micro_batch_size: 1
  global_batch_size: 256
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 2
  encoder_seq_length: 8192
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: ${multiply:${divide:${.hidden_size}, 2}, 7}
  num_attention_heads: 32
  num_query_groups: 8
  activation: fast-swiglu
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  sequence_parallel: true
  activations_checkpoint_granularity: selective
  tokenizer: {library: huggingface, type: meta-llama/Meta-Llama-3-8B}
  optim: {name: mcore_distributed_optim}
"""

BRIDGE = """
model: {_target_: megatron.bridge.models.llama.LlamaModelProvider, num_layers: 32, hidden_size: 4096,
  ffn_hidden_size: 14336, num_attention_heads: 32, num_query_groups: 8, gated_linear_unit: true, vocab_size: 128256,
  share_embeddings_and_output_weights: false, position_embedding_type: rope, seq_length: 8192,
  tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1}
train: {micro_batch_size: 1, global_batch_size: 128}
ddp: {use_megatron_fsdp: true, data_parallel_sharding_strategy: optim_grads_params, use_distributed_optimizer: true}
mixed_precision: bf16_with_fp8_current_scaling_mixed
"""

TITAN = """
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 4
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
"""

DEEPSPEED = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
    "bf16": {"enabled": True},
    "optimizer": {"type": "AdamW"},
}
HUGGING_FACE = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def call(name: str, text: str, *overrides: str, hardware: str | None = None) -> Experiment:
        path = tmp_path / name
        path.write_text(text)
        empty = Experiment(id="x")
        if hardware:
            empty = empty.model_copy(update={"hardware": refer_to_hardware(hardware)[0]})
        return read_configuration(path, overrides, empty)

    return call


def size(experiment: Experiment) -> float:
    assert experiment.model is not None
    return count_parameters(experiment.model).total


def test_a_megatron_script(read):
    run = read("train.sh", MEGATRON)
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=8 model=4 stage=2 microbatches=16 remat=full"
    assert run.hardware.devices == 64
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision) == (256, 8192, "bf16")
    assert (work.zero_stage, work.sequence_parallel, work.framework) == (1, True, "Megatron-Core")
    assert run.environment == {"NCCL_IB_TIMEOUT": "19"}
    assert run.provenance["model.layers"] == "train.sh:9: num_layers"


@pytest.mark.parametrize(
    ("more", "precision"),
    [("", "fp32"), ("--grad-reduce-in-bf16", "bf16"), ("--accumulate-allreduce-grads-in-fp32", "fp32")],
)
def test_gradients_of_megatron_are_fp32_unless_told_otherwise(read, more, precision):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {more}"))
    assert run.workload.gradient_precision == precision


def test_said_hardware_and_overrides_win_over_the_script(read):
    run = read("train.sh", MEGATRON, "tensor_model_parallel_size=8", "workload.optimizer=sgd", hardware="h100-128")
    assert str(run.plan) == "replica=8 model=8 stage=2 microbatches=16 remat=full"
    assert run.workload.optimizer == "sgd"
    assert "the launcher starts 64 processes; 128 were said" in run.notes


def test_a_branch_that_the_script_decides_is_taken(read):
    sharded = read("train.sh", MEGATRON.replace("${FSDP:-0}", "1"))
    assert str(sharded.plan).startswith("data=8 model=4")
    assert sharded.workload.zero_stage == 3


def test_a_branch_that_it_does_not_decide_is_left_out_and_named(read):
    run = read("train.sh", MEGATRON.replace('"$FSDP" == "1"', '"$(hostname)" == "a"'))
    assert run.workload.zero_stage is None
    assert any("--use-distributed-optimizer (line" in note and "under conditions" in note for note in run.notes)


def test_only_what_the_command_is_given_is_read(read):
    small = "SMALL_ARGS=(\n  --num-layers 2 --hidden-size 64 --tensor-model-parallel-size 1\n)\ntorchrun"
    assert size(read("train.sh", MEGATRON.replace("torchrun", small))) == pytest.approx(LLAMA3_8B, rel=0.01)
    twice = MEGATRON + "python pretrain_gpt.py --num-layers 2 --micro-batch-size 1 --num-attention-heads 2\n"
    assert "train.sh starts 2 runs; the one of line 20 is read" in read("train.sh", twice).notes


def test_a_sourced_file_beside_it_is_followed_and_another_leaves_precision_unknown(read, tmp_path):
    script = (
        MEGATRON.replace("--bf16", "")
        .replace("TP=", "source ./common.sh\nTP=")
        .replace("pretrain_gpt.py", "pretrain_gpt.py ${EXTRA[@]}")
    )
    run = read("train.sh", script)
    assert run.workload.precision is None
    (tmp_path / "common.sh").write_text("EXTRA=(\n    --fp16\n)\n")
    assert read("train.sh", script).workload.precision == "fp16"


def test_arguments_in_json_and_in_a_test_case(read):
    values = {
        "num_layers": 12, "hidden_size": 512, "num_attention_heads": 8, "micro_batch_size": 4, "world_size": 8,
        "tensor_model_parallel_size": 2, "global_batch_size": 32, "seq_length": 1024,
    }  # fmt: skip
    assert str(read("args.json", json.dumps(values)).plan) == "replica=4 model=2 microbatches=2 remat=none"
    block = {"MODEL_ARGS": {f"--{key.replace('_', '-')}": value for key, value in values.items()}}
    assert str(read("model_config.json", json.dumps(block)).plan) == "replica=4 model=2 microbatches=2 remat=none"


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [("[0]*2+[1]*30", 30), ("'([0]*2+[1]*30)'", 30), ("'([0,1]*16)'", 16), ("[[0]*4+[0,0,1,0]*7]", 7), ("2", 16)],
)
def test_layers_with_experts_as_megatron_writes_them(read, pattern, layers):
    moe = f"--bf16 --num-experts 64 --moe-ffn-hidden-size 1024 --moe-layer-freq {pattern}"
    assert read("train.sh", MEGATRON.replace("--bf16", moe)).model.moe_layers == layers


def test_experts_as_megatron_lays_them(read):
    moe = MEGATRON.replace("--bf16", "--bf16 --num-experts 64 --moe-ffn-hidden-size 1024 --moe-layer-freq [0]*2+[1]*30")
    moe = moe.replace("--bf16", "--bf16 --expert-model-parallel-size 8")
    run = read("moe.sh", moe)
    assert run.model is not None
    assert (run.model.experts, run.model.leading_dense_layers, run.model.expert_d_ff) == (64, 2, 1024)
    assert str(run.plan) == "model=4 expert=8 stage=2 microbatches=16 remat=full"
    whole = read("moe.sh", moe.replace("--bf16", "--bf16 --expert-tensor-parallel-size 1"))
    assert str(whole.plan) == "replica=4 model=4 expert=2 stage=2 microbatches=16 remat=full"
    assert any("lie whole over 8 devices" in note for note in whole.notes)


@pytest.mark.parametrize(
    ("said", "kind"),
    [("", "ring"), ("--cp-comm-type a2a", "ulysses"), ("--cp-comm-type all_gather p2p", "all_gather")],
)
def test_the_way_of_context_parallelism_as_megatron_says_it(read, said, kind):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 --context-parallel-size 2 {said}"))
    assert run.workload.context_parallel == kind
    assert read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {said}")).workload.context_parallel is None


def test_a_way_of_context_parallelism_that_megatron_does_not_have_is_refused(read):
    with pytest.raises(ConfigError, match="cp_comm_type must be one of p2p"):
        read("train.sh", MEGATRON.replace("--bf16", "--bf16 --context-parallel-size 2 --cp-comm-type nccl"))


def test_the_way_of_context_parallelism_in_yaml_and_toml(read):
    nemo = NEMO.replace("sequence_parallel: true", "context_parallel_size: 2\n  cp_comm_type: a2a+p2p")
    run = read("llama3.yaml", nemo)
    assert run.workload.context_parallel == "ring"
    assert any("cp_comm_type a2a+p2p" in note for note in run.notes)
    degree = "parallelism.context_parallel_degree=2"
    titan = read("llama3_8b.toml", TITAN, degree, hardware="h100-64")
    assert titan.workload.context_parallel == "all_gather"
    rotated = read(
        "llama3_8b.toml", TITAN, degree, "parallelism.context_parallel_rotate_method=alltoall", hardware="h100-64"
    )
    assert rotated.workload.context_parallel == "ring"


def test_experts_that_are_padded_to_their_capacity(read):
    factor = "--num-experts 64 --moe-ffn-hidden-size 1024 --moe-expert-capacity-factor"
    dropping = MEGATRON.replace("--bf16", f"--bf16 {factor} 1.5")
    assert read("moe.sh", dropping).workload.capacity_factor is None
    padded = dropping.replace("1.5", "1.5 --moe-pad-expert-input-to-capacity")
    assert read("moe.sh", padded).workload.capacity_factor == 1.5
    with pytest.raises(ConfigError, match="moe_expert_capacity_factor must be a number above zero"):
        read("moe.sh", padded.replace("1.5", "-1"))


@pytest.mark.parametrize(
    ("said", "graphs"),
    [
        ("", None), ("--cuda-graph-impl none", "none"), ("--cuda-graph-impl local", "layer"),
        ("--cuda-graph-impl full_iteration", "step"), ("--enable-cuda-graph --cuda-graph-scope full_iteration", "step"),
        ("--external-cuda-graph", "layer"),
        ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp", "layer"),
        ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router", "module"),
    ],
)  # fmt: skip
def test_cuda_graphs_as_megatron_says_them(read, said, graphs):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {said}"))
    assert run.workload.cuda_graphs == graphs
    assert any("CUDA graphs of some modules" in note for note in run.notes) == (graphs == "module")


def test_cuda_graphs_in_yaml_and_unknown_ones(read):
    nemo = NEMO.replace("sequence_parallel: true", "enable_cuda_graph: true\n  cuda_graph_scope: full_iteration")
    assert read("llama3.yaml", nemo).workload.cuda_graphs == "step"
    with pytest.raises(ConfigError, match="cuda_graph_impl must be one of none, local"):
        read("train.sh", MEGATRON.replace("--bf16", "--bf16 --cuda-graph-impl nccl"))


def test_nemo(read):
    run = read("llama3.yaml", NEMO)
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=4 model=4 stage=4 microbatches=64 pipeline_repeats=2 remat=selective"
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("NeMo", 1, "bf16")


def test_megatron_bridge(read):
    run = read("run_config.yaml", BRIDGE, hardware="h100-64")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "data=32 model=2 microbatches=4 remat=none"
    assert (run.workload.framework, run.workload.precision) == ("Megatron-Bridge", "fp8")


def test_torchtitan(read):
    run = read("llama3_8b.toml", TITAN, hardware="h100-64")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=2 data=8 model=4 microbatches=1 remat=minimal"
    assert (run.workload.global_batch, run.workload.precision, run.workload.sequence_length) == (32, "fp8", 8192)
    changed = read("llama3_8b.toml", TITAN, "parallelism.tensor_parallel_degree=8", hardware="h100-64")
    assert str(changed.plan).startswith("replica=2 data=4 model=8")


def test_without_hardware_that_is_said(read):
    run = read("llama3_8b.toml", TITAN)
    assert run.plan is None
    assert any("add --hardware" in note for note in run.notes)


def test_deepspeed_with_a_model_beside_it(read, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(HUGGING_FACE))
    run = read("ds_config.json", json.dumps(DEEPSPEED), hardware="a100-16")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "data=16 microbatches=2 offload=optimizer"
    assert (run.workload.global_batch, run.workload.zero_stage, run.workload.precision) == (128, 3, "bf16")


def test_a_deepspeed_file_to_be_tuned(read):
    run = read("ds_config.json", '{"train_micro_batch_size_per_gpu": "auto", "autotuning": {}}', hardware="a100-16")
    assert (str(run.plan), run.workload.global_batch) == ("replica=16", None)
    assert any("the batch is not said" in note for note in run.notes)


def test_deepspeed_without_a_model_says_what_to_give(read):
    run = read("ds_config.json", json.dumps(DEEPSPEED), "model=llama3.1-8b", hardware="a100-16")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    silent = read("ds_config.json", json.dumps(DEEPSPEED), hardware="a100-16")
    assert any("has no model" in note for note in silent.notes)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tune.yaml", "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: 2", "torchtune recipe"),
        ("axo.yml", "base_model: meta/x\nsequence_len: 512\nmodel_type: LlamaForCausalLM", "an Axolotl configuration"),
        ("lev.yaml", "model: {type: llama}\ntrainer: {train_batch_size: 4, mp: x}", "a Levanter configuration"),
        ("lev.yaml", "data: !include data/x.yaml\nmodel: {type: llama}\ntrainer:\n  mp: x", "a Levanter"),
        ("fuji.py", "from axlearn.common import config\n", "an AXLearn program"),
        ("fuji.txt", "model.klass: 'axlearn.common.causal_lm.Model'\n", "an AXLearn configuration"),
        ("recipe.py", "from nemo.collections import llm\n", "a NeMo or Megatron-Bridge recipe"),
        ("asr.yaml", "name: asr\nmodel: {sample_rate: 16000}\ntrainer: {devices: 1}", "a NeMo configuration"),
        ("alias.yaml", "model: &m {a: 1}\nother: *m", "aliases .* are not read; write out"),
        ("bert.sh", "python pretrain_bert.py --num-attention-heads 4 --micro-batch-size 2", "runs pretrain_bert.py"),
        ("flux.toml", '[model]\nname = "flux"\nflavor = "flux-dev"\n[training]\nsteps = 1', "only decoders"),
        ("other.toml", "[project]\nname = 'x'", "is not a torchtitan configuration"),
        ("broken.toml", "[model\n", "is not TOML"),
        ("train.sh", MEGATRON.replace("--num-layers 32", "--num-layers 1e99"), "num_layers must be a whole number"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_so(read, name, text, said):
    with pytest.raises(ConfigError, match=said) as caught:
        read(name, text)
    assert "\n" not in str(caught.value)


CHAT = """
ZERO=$1
if [ "$ZERO" == "" ]; then ZERO=3; fi
deepspeed --num_gpus 8 main.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 \\
  --max_seq_len 512 --gradient_accumulation_steps 2 --gradient_checkpointing --zero_stage $ZERO --deepspeed
"""
TRAINER = """
DS=/tmp/ds.json
cat <<EOT > $DS
{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": ${STAGE:-2}}, "bf16": {"enabled": true}}
EOT
torchrun --nproc_per_node 8 train.py --deepspeed $DS --per_device_train_batch_size 2 --model_name_or_path llama3.1-8b
"""


def test_a_script_that_starts_deepspeed(read):
    chat = read("run.sh", CHAT)
    assert (str(chat.plan), chat.workload.global_batch) == ("data=8 microbatches=2 remat=full", 64)
    assert (chat.model and chat.model.layers, chat.workload.sequence_length) == (32, 512)
    trainer = read("run.sh", TRAINER, hardware="h100-16")
    assert (str(trainer.plan), trainer.workload.zero_stage, trainer.workload.global_batch) == (
        "replica=16 microbatches=1", 2, 32,
    )  # fmt: skip
    assert trainer.workload.precision == "bf16"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "deepspeed train.py --deepspeed_config there/ds.json",
            r"starts DeepSpeed with there/ds.json, which is not beside",
        ),
        ("deepspeed train.py --epochs 3", "without naming its configuration"),
        ("cat <<E > ds.json\n{oops\nE\ndeepspeed train.py --deepspeed ds.json", "writes a DeepSpeed configuration"),
        (MEGATRON.replace("--bf16", "--bf16 --deepspeed --zero-stage 2"), "ZeRO stage 2 is not read"),
    ],
)
def test_a_script_of_deepspeed_that_is_not_read_says_so(read, script, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", script)


def test_megatron_deepspeed_has_arguments_of_its_own(read):
    arguments = "--bf16 --deepspeed --zero-stage 1 --num-key-value-heads 4 --deepspeed-activation-checkpointing"
    run = read("run.sh", MEGATRON.replace("--bf16", arguments).replace("--recompute-granularity full", ""))
    assert run.model is not None
    assert (run.model.kv_heads, run.workload.framework, run.workload.zero_stage) == (4, "Megatron-DeepSpeed", 1)
    assert "remat=full" in str(run.plan)


def test_ulysses_of_deepspeed_is_context_parallelism(read):
    script = MEGATRON.replace("--bf16", "--bf16 --deepspeed --ds-sequence-parallel-size 4")
    run = read("run.sh", script)
    assert (run.plan.degree("seq"), run.workload.context_parallel) == (4, "ulysses")
    wider = Plan.parse("replica=2 model=4 seq=8 remat=full")
    assert "--ds-sequence-parallel-size 8" in launch_lines(wider, "megatron", run.hyperparameters)
    unknown = read("run.sh", script.replace("size 4", "size $(cat sp)"))
    assert any("the plan is unknown: it hangs on ds_sequence_parallel_size" in note for note in unknown.notes)

    zero = DEEPSPEED | {"sequence_parallel_size": 4}
    run = read("ds_config.json", json.dumps(zero), "model=llama3.1-8b", hardware="a100-16")
    assert str(run.plan) == "data=4 seq=4 microbatches=2 offload=optimizer"
    assert run.workload.global_batch == 32
    assert '"sequence_parallel_size": 1' in launch_lines(Plan.parse("data=16"), "deepspeed", run.hyperparameters)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("TP=$(cat tp)", "the plan is unknown: it hangs on tensor_model_parallel_size"),
        ("if grep a b; then MODEL_ARGS+=(--context-parallel-size 2); fi", "it hangs on context_parallel_size"),
        ("if grep a b; then MODEL_ARGS+=(--qk-layernorm); fi", "the model is unknown: it hangs on qk_layernorm"),
    ],
)
def test_what_hangs_on_an_undecided_argument_is_unknown(read, line, note):
    run = read("run.sh", MEGATRON.replace("torchrun", f"{line}\ntorchrun"))
    assert any(note in said for said in run.notes)
    assert run.plan is None or run.model is None or run.model.missing()
