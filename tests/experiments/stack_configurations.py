"""Configurations of other stacks, and how a test reads one."""

import pytest

from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.models.parameters import count_parameters

LLAMA3_8B = 8.03e9

MIXTURE = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 32"
    " --seq-length 4096 --max-position-embeddings 4096 --num-experts 64 --moe-router-topk 8 --moe-ffn-hidden-size 768"
    " --ffn-hidden-size 6144 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256 --bf16"
    " --swiglu --vocab-size 151936 --use-distributed-optimizer --use-mcore-models"
)
"""A command of Megatron-LM that trains a mixture of experts, without CUDA graphs."""

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
