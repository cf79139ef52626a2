#!/bin/bash
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
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES pretrain_gpt.py ${MODEL_ARGS[@]} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 --sequence-parallel \
    --micro-batch-size 2 --global-batch-size 256 --bf16 --recompute-granularity full
