"""What the chip itself does in one microbatch: matrix multiplications, attention, elementwise traffic, logits.

A matrix multiplication of M×K by K×N takes 2·M·N·K FLOPs at the sustained rate, plus the share of its operand
traffic that is not hidden (roofline, "How to Scale Your Model", chapter 1; tile quantisation, Volkov & Demmel 2008):
the rate falls off where one of M, N, K is small.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.models import Workload
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs, anywhere, select

PASSES = {"flash": 0.0, "softmax": 3.0, "unfused": 6.0}
"""HBM passes over the scores, forward, counted by class of kernel; what one takes is fitted (``score_traffic``)."""
KEPT_BYTES = {"flash": 0.0, "softmax": 5.0, "unfused": 14.0}
"""Bytes that a score keeps: fused, input and output of the softmax in bf16 and a dropout mask (arXiv:2205.05198,
section 4); unfused, three fp32 copies and a bf16 one."""
HEADS_TOGETHER = 4  # sequences times heads that Megatron-Core's softmax kernel takes (``fusions/fused_softmax.py``)


def score_passes(inputs: StepInputs, sequences: Number) -> Number:
    """HBM passes over the scores of so many sequences, forward."""
    return np.where(_falls_back(inputs, sequences), PASSES["unfused"], inputs.workload.score_passes)


def score_bytes(inputs: StepInputs, sequences: Number) -> Number:
    """Bytes that each score of so many sequences keeps in HBM for the backward pass."""
    return np.where(_falls_back(inputs, sequences), KEPT_BYTES["unfused"], inputs.workload.score_bytes)


def _falls_back(inputs: StepInputs, sequences: Number) -> NDArray[np.bool_]:
    if not anywhere(inputs.workload.megatron_softmax):
        return np.zeros((), dtype=np.bool_)
    heads = sequences * inputs.model.heads / inputs.plan.model
    return np.logical_and(np.mod(heads, HEADS_TOGETHER) > 0, np.asarray(inputs.workload.megatron_softmax) > 0)


BACKWARD_FLASH = 2.5  # five matmuls for two: FlashAttention-2, arXiv:2307.08691, section 4.1
BACKWARD_MATMUL = 2.0  # gradients of input and of weights: Kaplan et al., arXiv:2001.08361, table 1
ACTIVATION_BYTES = 2.0  # bf16
RESIDUAL_PASSES = 6.0  # a fused norm and a residual addition with dropout, each read and written
NORM_PASSES = 12.0  # a norm: to fp32, square, mean, scale, back, each read and written


@dataclass(frozen=True, slots=True)
class Compute:
    """Seconds of one device in one microbatch, by what bounds them: ``layer_`` for one layer, ``head_`` for logits.

    ``layer_again`` is what the backward pass computes again of matrix products and attention, ``layer_hbm_again`` of
    their traffic; ``layer_scores`` is what of ``layer_hbm`` an attention that is not fused moves.
    """

    layer_matmul: Number
    layer_attention: Number
    layer_hbm: Number
    layer_scores: Number
    head_matmul: Number
    head_hbm: Number
    layer_again: Number
    layer_hbm_again: Number


def attended(inputs: StepInputs) -> Number:
    """Keys that a query meets on average: half the sequence (causal), less in local layers."""
    model, sequence = inputs.model, inputs.workload.sequence
    full = sequence / 2
    local = np.minimum(full, model.window)
    share = model.local_layers / model.layers
    return full * (1 - share) + local * share


def compute(inputs: StepInputs, constants: Constants) -> Compute:
    """Time of one microbatch on one device, forward, backward and recomputation together."""
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    tokens = inputs.tokens_per_microbatch
    latent = model.attention_parameters / (model.width * (model.qkv_width + model.out_width))
    queries = (model.qkv_width - model.key_value_width) / layout.model
    projected = queries + model.key_value_width / inputs.key_value_parts
    before = latent * matmul_seconds(inputs, constants, tokens, projected, model.width)
    after = latent * matmul_seconds(inputs, constants, tokens, model.width, model.out_width / layout.model)
    mlp = _mlp(inputs, constants, tokens)
    attention, scores = _attention(inputs, constants, tokens)
    elementwise = _elementwise(inputs, constants, tokens)

    products_again = before * layout.recompute_qkv + after * layout.recompute_out + mlp * layout.recompute_mlp
    matmul = (before + after + mlp) * (1 + work.backward_products) + products_again
    backward = select(work.fused_attention, BACKWARD_FLASH, BACKWARD_MATMUL)
    attention_again = attention * layout.recompute_attention
    core = attention * (1 + backward) + attention_again
    moved = scores * (2 + layout.recompute_attention)
    traffic = elementwise * (2 + layout.recompute_elementwise) + moved
    traffic_again = elementwise * layout.recompute_elementwise + scores * layout.recompute_attention

    product = matmul_seconds(inputs, constants, tokens, model.vocab / layout.model, model.width)
    logits = model.losses * product * (1 + work.backward_products)
    split = select(work.vocab_parallel_loss, layout.model, 1.0)
    softmax = (8 + 2 * work.logit_bytes) * model.losses * tokens * model.vocab / split / _hbm(inputs, constants)
    return Compute(matmul, core, traffic, moved, logits, softmax, products_again + attention_again, traffic_again)


def model_flops(inputs: StepInputs) -> Number:
    """FLOPs that the model needs for a step over all devices, without recomputation (PaLM, arXiv:2204.02311, B)."""
    model, work = inputs.model, inputs.workload
    dense_layers = model.layers - model.moe_layers
    per_layer = model.attention_parameters * model.layers
    per_layer = per_layer + dense_layers * (model.up_projections + 1) * model.width * model.mlp_width
    routed = model.experts_per_token * model.expert_mlp_width + model.shared_mlp_width
    per_layer = per_layer + model.moe_layers * (model.up_projections + 1) * model.width * routed
    attention = 2 * attended(inputs) * model.score_width * model.layers
    products = 2 * (per_layer + model.losses * model.vocab * model.width)
    passes = (1 + work.backward_products) * products + (1 + BACKWARD_MATMUL) * attention
    return passes * work.batch * work.sequence


def _hbm(inputs: StepInputs, constants: Constants) -> Number:
    return inputs.hardware.hbm_bandwidth * constants.memory_efficiency


def matmul_seconds(inputs: StepInputs, constants: Constants, rows: Number, columns: Number, inner: Number) -> Number:
    """Of one product of rows by inner and inner by columns."""
    flops = 2 * rows * columns * inner / (inputs.hardware.peak_matmul * constants.matmul_efficiency)
    size = inputs.workload.operand_bytes * (rows * inner + columns * inner) + ACTIVATION_BYTES * rows * columns
    return flops + constants.operand_exposure * size / _hbm(inputs, constants)


def _mlp(inputs: StepInputs, constants: Constants, tokens: Number) -> Number:
    """Mean over layers of the MLP: dense layers, and MoE layers with routed and shared experts."""
    model, layout = inputs.model, inputs.plan
    dense = _gated(inputs, constants, tokens, model.mlp_width / layout.model)
    moe_share = model.moe_share
    if not anywhere(model.experts):
        return dense
    local = np.maximum(model.experts / inputs.expert_devices, 1)
    own = tokens * inputs.expert_parts / layout.model
    one = _gated(inputs, constants, own * inputs.computed_experts / local, model.expert_mlp_width / inputs.expert_parts)
    experts = local * one / constants.grouped_efficiency
    shared = _gated(inputs, constants, tokens, model.shared_mlp_width / layout.model)
    return dense * (1 - moe_share) + (experts + shared) * moe_share


def _gated(inputs: StepInputs, constants: Constants, rows: Number, hidden: Number) -> Number:
    up = matmul_seconds(inputs, constants, rows, inputs.model.up_projections * hidden, inputs.model.width)
    return up + matmul_seconds(inputs, constants, rows, inputs.model.width, hidden)


def _attention(inputs: StepInputs, constants: Constants, tokens: Number) -> tuple[Number, Number]:
    """Seconds of the forward score and value products, and of the score matrix where it goes through HBM.

    A fused kernel skips the masked half and keeps scores on the chip (FlashAttention, arXiv:2205.14135); an unfused
    one computes all of them and passes over the matrix several times (mask, softmax, dropout).
    """
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    fused = work.fused_attention > 0
    keys = np.where(fused, attended(inputs), work.sequence)
    reach = 2 * attended(inputs)
    ramped = constants.attention_efficiency * reach / (reach + constants.attention_ramp)
    peak = np.where(fused, inputs.hardware.peak_attention * ramped, inputs.hardware.peak_bf16)
    products = 2 * tokens * keys * model.score_width / layout.model / (peak * constants.matmul_efficiency)
    matrix = ACTIVATION_BYTES * tokens * work.sequence * model.heads / layout.model
    passes = score_passes(inputs, inputs.sequences_per_microbatch)
    scores = passes * constants.score_traffic * matrix / _hbm(inputs, constants)
    return products, scores


def _elementwise(inputs: StepInputs, constants: Constants, tokens: Number) -> Number:
    """Norms, residuals, rotary embedding and activation of a forward layer, as HBM passes over their tensors.

    Korthikanti et al., arXiv:2205.05198, section 4: what is not split by tensor parallelism is split by sequence
    parallelism, if it is on.
    """
    model, work, layout = inputs.model, inputs.workload, inputs.plan
    norms = RESIDUAL_PASSES + work.unfused_norm * NORM_PASSES * constants.norm_traffic
    residual = model.sequential_blocks * norms * model.width / select(work.sequence_parallel, layout.model, 1.0)
    moe_share = model.moe_share
    hidden = model.mlp_width * (1 - moe_share)
    hidden = hidden + moe_share * (
        inputs.computed_experts * (model.expert_mlp_width + 2 * model.width) + model.shared_mlp_width
    )
    inner = ((model.up_projections + 1) * hidden + 2 * model.qkv_width) / layout.model
    routed = moe_share * work.routing_passes * inputs.computed_experts * model.width / layout.model
    passes = constants.elementwise_traffic * (residual + inner) + routed + work.adapter_width / layout.model
    return ACTIVATION_BYTES * tokens * passes / _hbm(inputs, constants)


GRAPH_LAUNCH = 2.5e-6
"""Seconds of the host for a CUDA graph; each of its kernels adds a nanosecond (NVIDIA, "Constant Time Launch for
Straight-Line CUDA Graphs", CUDA 12.6, 2024)."""
ROUTING = {"moe_router": 0.25, "moe_preprocess": 0.25}
"""Launches of a layer of experts, attention apart, that a captured module saves: scores and counts come before dispatch
(Megatron Core, ``moe_layer.py``). Judgement: steps with a captured router."""


@dataclass(frozen=True, slots=True)
class Launches:
    """Seconds of the host to launch a layer in all of its passes: what the device may hide, and what it waits for."""

    ahead: Number
    awaited: Number


def graphed_shares(workload: Workload) -> tuple[float, float]:
    """Shares of the launches that CUDA graphs save the host: of attention, and of the MLP or the experts."""
    captured = {*workload.graph_modules}
    if workload.cuda_graphs in ("layer", "step"):
        return 1.0, 1.0
    routing = sum(ROUTING.get(module, 0.0) for module in captured)
    return float("attn" in captured), 1.0 if captured & {"mlp", "moe"} else routing


def launches(inputs: StepInputs, constants: Constants) -> Launches:
    """Launches of a layer, mean over dense layers and those of experts.

    Attention is half of a dense layer's launches, and the same in a layer of experts. A host that does not know how
    many tokens each expert gets waits for the device to count them, and launches nothing ahead of it (Megatron Core,
    ``moe/token_dispatcher.py``, ``cuda_sync_point``).
    """
    work, layout, moe_share = inputs.workload, inputs.plan, inputs.model.moe_share
    passes = (3 + layout.recompute_layer) * (1 - inputs.hardware.tpu)
    collectives = constants.collective_floor * (layout.model > 1) / 2
    half = (constants.kernel_floor + constants.engine_floor * work.transformer_engine) / 2 + collectives
    dense = half * (1 - work.graphed_attention) + half * (1 - work.graphed_mlp) * (1 - moe_share)
    experts = (constants.expert_floor + collectives) * (1 - work.graphed_mlp) * moe_share
    graphs = GRAPH_LAUNCH * np.maximum(work.graphed_attention, work.graphed_mlp)
    counted = select(work.counts_tokens, experts, 0.0)
    return Launches(ahead=(dense + graphs + experts - counted) * passes, awaited=counted * passes)
