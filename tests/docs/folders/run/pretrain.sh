#!/bin/bash
# Llama-3 8B on four nodes of eight GPUs, with more tensor parallelism than it needs.
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --vocab-size 128256 \
    --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights \
    --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 128 \
    --tensor-model-parallel-size 8 --sequence-parallel --bf16 --use-distributed-optimizer
