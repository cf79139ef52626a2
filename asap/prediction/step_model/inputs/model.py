"""Shapes of the decoder, in numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]
"""One value, or an array of shape (cases,): plans of one model, or runs of many models."""


def select(switch: Number, on: Number, off: Number) -> Number:
    """``on`` where the switch is above 0, else ``off``. A switch that is one number selects without copying."""
    if isinstance(switch, float):
        return on if switch > 0 else off
    return np.where(switch > 0, on, off)


def anywhere(switch: Number) -> bool:
    """Whether a switch, or a count, is not 0 in some case. One number is not made an array for it."""
    return bool(np.any(switch)) if isinstance(switch, np.ndarray) else bool(switch)


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Shapes of the decoder. Widths are in elements."""

    layers: Number
    """Decoder layers, with those of multi-token prediction."""
    moe_layers: Number
    """Layers whose MLP is a mixture of experts."""
    width: Number
    """Width of the residual stream (d_model)."""
    vocab: Number
    """Entries of the vocabulary."""
    heads: Number
    """Query heads."""
    kv_heads: Number
    """Heads of keys and values."""
    qkv_width: Number
    """Width of queries, keys and values together."""
    out_width: Number
    """Width of what attention hands to its output projection."""
    key_value_width: Number
    """Width of keys and values together."""
    attention_parameters: Number
    """Parameters of the attention of one layer."""
    score_width: Number
    """Width of queries and values over all heads: two FLOPs per element for each pair of query and key."""
    up_projections: Number
    """Matrices into the MLP: 2 with a gate, else 1."""
    sequential_blocks: Number
    """What a layer adds to its residual stream one after the other: attention, then MLP (2), or both at once (1)."""
    mlp_width: Number
    """Hidden width of a dense MLP (d_ff)."""
    experts: Number
    """Routed experts of an MoE layer; 0 in a dense model."""
    experts_per_token: Number
    """Routed experts that a token visits."""
    expert_mlp_width: Number
    """Hidden width of one expert."""
    shared_mlp_width: Number
    """Hidden width of all shared experts together."""
    losses: Number
    """Times that logits and their loss are computed: once, and for each layer of multi-token prediction."""
    tied_embeddings: Number
    """Switch: the embedding is the output matrix as well."""
    window: Number
    """Keys that a query of a local layer can see."""
    local_layers: Number
    """Layers with sliding-window attention."""

    @property
    def moe_share(self) -> Number:
        """Share of the layers that are MoE."""
        return self.moe_layers / self.layers


@dataclass(frozen=True, slots=True)
class HardwareInputs:
    """Rates of one device and of what joins devices."""

    tpu: Number
    """Switch: a TPU on a torus; else a GPU on NVLink and a fabric."""
    peak_matmul: Number
    """FLOP/s in the precision of the workload."""
    peak_bf16: Number
    """FLOP/s in bf16."""
    peak_attention: Number
    """FLOP/s in bf16 that a fused attention kernel can use."""
    hbm_bytes: Number
    """Bytes."""
    hbm_bandwidth: Number
    """Bytes/s."""
    host_bandwidth: Number
    """Bytes/s between HBM and host memory, in one direction."""
    host_update: Number
    """Bytes/s of an optimizer that the host's processors run for one device."""
    host_bytes: Number
    """Bytes of host memory for one device; without a limit where they are not known."""
    host_devices: Number
    """Devices that share a host."""
    link_bandwidth: Number
    """Bytes/s in one direction: of one ICI link, or into NVLink."""
    torus_axes: Number
    """Axes of the torus that are longer than 1; below, devices along each, 1 where there is none."""
    torus_x: Number
    torus_y: Number
    torus_z: Number
    links_x: Number
    """Links over which a ring along the first axis sends at once: 2 if the axis closes, else 1."""
    links_y: Number
    links_z: Number
    scaleup_domain: Number
    """Devices that ICI or NVLink joins."""
    link_latency: Number
    """Seconds per hop on ICI or NVLink."""
    network_bandwidth: Number
    """Bytes/s into the network between nodes or slices."""
    network_port: Number
    """Bytes/s of one port into it: the rate of a node over as many ports of its maker's as that takes."""
    network_latency: Number
    """Seconds per hop between nodes or slices."""


@dataclass(frozen=True)
class PlanInputs:
    """The plan. Degrees within a slice, and over slices (``dcn_``); ``seq``, ``model`` and ``expert`` hold both."""

    replica: Number
    """Degree of plain data parallelism."""
    data: Number
    """Degree of data parallelism with sharded parameters (FSDP)."""
    seq: Number
    """Degree of context parallelism."""
    model: Number
    """Degree of tensor parallelism."""
    expert: Number
    """Degree of expert parallelism."""
    stage: Number
    """Pipeline stages."""
    dcn_replica: Number
    """Degree of plain data parallelism over slices."""
    dcn_data: Number
    """Degree of FSDP over slices."""
    dcn_stage: Number
    """Pipeline stages over slices."""
    microbatches: Number
    """Microbatches of a step."""
    pipeline_repeats: Number
    """Virtual stages that a device holds."""
    recompute_qkv: Number
    """Share of the projections before attention that the backward pass computes again."""
    recompute_out: Number
    """Share of the projection after attention that the backward pass computes again."""
    recompute_mlp: Number
    """Share of the MLP that the backward pass computes again."""
    recompute_attention: Number
    """Share of attention itself that the backward pass computes again."""
    recompute_elementwise: Number
    """Share of the elementwise operations that the backward pass computes again."""
    kept_layer: Number
    """Share of all of a layer's tensors that is kept for the backward pass."""
    kept_inputs: Number
    """Switch: of layers that are computed again together, the input of each is kept."""
    kept_qkv: Number
    """Share kept of what the projections before attention write."""
    kept_context: Number
    """Share kept of what attention writes."""
    kept_out: Number
    """Share kept of what the projection after attention writes."""
    kept_mlp: Number
    """Share kept of what the products into the MLP write."""
    freed_norms: Number
    """Share freed, of a layer that is kept otherwise, of what norms write."""
    freed_qkv: Number
    """Share freed of what the projections before attention write."""
    freed_mlp: Number
    """Share freed of what lies inside dense MLPs."""
    freed_experts: Number
    """Share freed of what lies inside routed experts, and of the tokens sent to them."""
    freed_shared_experts: Number
    """Share freed of what lies inside shared experts."""
    freed_activation: Number
    """Share freed of what the activation function of routed experts writes."""
    host_optimizer: Number
    """Switch: optimizer state lies in host memory."""
    host_parameters: Number
    """Switch: parameters lie in host memory between steps."""
    host_activations: Number
    """Switch: the inputs of layers lie in host memory."""
    host_qkv: Number
    """Share that lies there of what the projections before attention write."""
    host_context: Number
    """Share that lies there of what attention writes."""
    host_out: Number
    """Share that lies there of what the projection after attention writes."""
    host_mlp: Number
    """Share that lies there of what the products into the MLP write."""

    @cached_property
    def stages(self) -> Number:
        """Pipeline stages of the job."""
        return self.stage * self.dcn_stage

    @cached_property
    def fsdp(self) -> Number:
        """Degree of FSDP within a slice and over slices."""
        return self.data * self.dcn_data

    @cached_property
    def batch_shards(self) -> Number:
        """Parts into which the batch is divided."""
        return self.replica * self.dcn_replica * self.fsdp * self.expert

    @cached_property
    def recompute_layer(self) -> Number:
        """Largest share of a matrix multiplication of a layer that is computed again."""
        return np.maximum(self.recompute_mlp, np.maximum(self.recompute_qkv, self.recompute_out))
