"""One training step in numbers: what every formula of this room reads.

Each field is a float, or an array of shape (cases,): plans of one model, or runs of many models. A formula is written
once and broadcasts over both. Switches are 1 for yes and 0 for no.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Shapes of the decoder. Widths are in elements."""

    layers: Number
    """Decoder layers."""
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
class WorkloadInputs:
    """What a step works on, and how the training stack stores and computes it."""

    batch: Number
    """Sequences of a step, whole job."""
    sequence: Number
    """Tokens of a sequence."""
    operand_bytes: Number
    """Bytes of an element of a matrix multiplication's operands."""
    kept_input_bytes: Number
    """Bytes of an element of the input that a matrix multiplication keeps for its backward pass."""
    parameter_bytes: Number
    """Bytes of a parameter as it is held between steps."""
    gradient_bytes: Number
    """Bytes of an accumulated gradient."""
    reduce_bytes: Number
    """Bytes of a gradient in its reduce-scatter."""
    gather_bytes: Number
    """Bytes per parameter in the all-gather that follows: of gradients, or of parameters after a sharded update."""
    reduction_bucket: Number
    """Bytes of gradients that replicas reduce at once, each time at the latency of their ring; without a limit, all."""
    optimizer_bytes: Number
    """Bytes per parameter of optimizer state, with the master copy."""
    fused_attention: Number
    """Switch: the kernel keeps scores on the chip."""
    score_passes: Number
    """HBM passes over the score matrix, forward."""
    score_bytes: Number
    """Bytes that a score keeps in HBM for the backward pass."""
    unfused_norm: Number
    """Switch: a norm is several kernels."""
    unfused_glu: Number
    """Switch: gate and product of a gated MLP are kernels of their own, with one more tensor to keep."""
    logit_bytes: Number
    """Bytes per logit, with its gradient and copies."""
    loss_chunks: Number
    """Parts in which the loss is computed."""
    vocab_parallel_loss: Number
    """Switch: logits stay split over the tensor axis."""
    regathers_activations: Number
    """Switch: what sequence parallelism gathered is not kept but gathered again for the backward pass."""
    xla: Number
    """Switch: XLA compiles the step."""
    scans_layers: Number
    """Switch: XLA runs the layers as a loop, which stacks what they keep."""
    layers_together: Number
    """Layers that are rematerialised as one: of the block that a scan over unlike layers repeats, else 1."""
    overlaps_reduction: Number
    """Switch: gradients are reduced during the backward pass."""
    forwards_tokens: Number
    """Switch: a token crosses the network once for all experts of a node, and is forwarded there."""
    zero_stage: Number
    """ZeRO stage over the replicas, 0 to 2: stage 3 is the ``data`` axis of a plan, and its replicas hold copies."""
    weights_over_tokens: Number
    """Switch: weights are sharded over the context axis as well, and those of no expert over the expert axis."""
    gathers_through_one_port: Number
    """Switch: sharded parameters come from other nodes at the rate of a single port: so do those of DeepSpeed's ZeRO
    stage 3 in arXiv:2104.04473, table 2, and in XTuner's measurements."""
    updates_on_host: Number
    """Switch: the host updates what is offloaded, so gradients wait there with the optimizer, and parameters come to
    the device a layer at a time (PyTorch, ``CPUOffloadPolicy``; ZeRO-Offload, arXiv:2101.06840)."""
    accumulates_whole: Number
    """Switch: FSDP scatters gradients in the last microbatch alone, and keeps all of them until then, in 16 bits: under
    ``no_sync``, which Hugging Face's Trainer takes (accelerate, ``concept_guides/gradient_synchronization.md``)."""
    capacity_factor: Number
    """Slots of an expert over its fair share of the tokens."""
    graphs_layers: Number
    """Switch: the host of a GPU launches a layer, or the whole step, as one CUDA graph."""
    rings_context: Number
    """Switch: context parallelism passes keys and values around a ring while attention computes."""
    swaps_heads: Number
    """Switch: context parallelism swaps heads for tokens around attention, by all-to-alls."""
    sequence_parallel: Number
    """Switch: norms and residuals are split over the tensor axis."""
    experts_over_model: Number
    """Switch: experts lie whole over the tensor axis as well, and are not split by it."""
    experts_over_seq: Number
    """Switch: experts lie over the context axis as well."""


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
    host_bytes: Number
    """Bytes of host memory for one device; without a limit where they are not known."""
    link_bandwidth: Number
    """Bytes/s in one direction: of one ICI link, or into NVLink."""
    torus_axes: Number
    """Axes of the torus that are longer than 1."""
    torus_x: Number
    """Devices along the first axis of the torus; 1 where there is none."""
    torus_y: Number
    """Along the second."""
    torus_z: Number
    """Along the third."""
    links_x: Number
    """Links over which a ring along the first axis sends at once: 2 if the axis closes, else 1."""
    links_y: Number
    """Along the second."""
    links_z: Number
    """Along the third."""
    scaleup_domain: Number
    """Devices that ICI or NVLink joins."""
    link_latency: Number
    """Seconds per hop on ICI or NVLink."""
    network_bandwidth: Number
    """Bytes/s into the network between nodes or slices."""
    network_latency: Number
    """Seconds per hop between nodes or slices."""


@dataclass(frozen=True, slots=True)
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
    kept_qkv: Number
    """Share kept of what the projections before attention write."""
    kept_context: Number
    """Share kept of what attention writes."""
    kept_out: Number
    """Share kept of what the projection after attention writes."""
    kept_mlp: Number
    """Share kept of what the products into the MLP write."""
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

    @property
    def stages(self) -> Number:
        """Pipeline stages of the job."""
        return self.stage * self.dcn_stage

    @property
    def fsdp(self) -> Number:
        """Degree of FSDP within a slice and over slices."""
        return self.data * self.dcn_data

    @property
    def batch_shards(self) -> Number:
        """Parts into which the batch is divided."""
        return self.replica * self.dcn_replica * self.fsdp * self.expert

    @property
    def recompute_layer(self) -> Number:
        """Largest share of a matrix multiplication of a layer that is computed again."""
        return np.maximum(self.recompute_mlp, np.maximum(self.recompute_qkv, self.recompute_out))


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Model, workload, hardware and plan of one step, or of many at once."""

    model: ModelInputs
    workload: WorkloadInputs
    hardware: HardwareInputs
    plan: PlanInputs

    @property
    def layers_per_stage(self) -> Number:
        """Layers of the fullest pipeline stage."""
        return np.ceil(self.model.layers / self.plan.stages)

    @property
    def computed_experts(self) -> Number:
        """Routed experts that compute a token: those it visits, and a share of the slots that stay empty (GShard,
        arXiv:2006.16668, section 2.2; Switch Transformers, arXiv:2101.03961, section 2.2)."""
        return self.model.experts_per_token * self.workload.capacity_factor

    @property
    def expert_devices(self) -> Number:
        """Devices over which the experts of a layer lie whole: the expert axis, and those that are folded into it
        (Liu et al., arXiv:2504.14960, section 3.2)."""
        work, layout = self.workload, self.plan
        over_model = np.where(work.experts_over_model > 0, layout.model, 1.0)
        return layout.expert * over_model * np.where(work.experts_over_seq > 0, layout.seq, 1.0)

    @property
    def expert_parts(self) -> Number:
        """Parts into which the tensor axis splits an expert."""
        return np.where(self.workload.experts_over_model > 0, 1.0, self.plan.model)

    @property
    def replicas(self) -> Number:
        """Devices that hold the same shard of the parameters; ZeRO shards the state over them."""
        same_tokens = np.where(self.workload.weights_over_tokens > 0, 1.0, self.plan.seq)
        return self.plan.replica * self.plan.dcn_replica * same_tokens

    @property
    def expert_replicas(self) -> Number:
        """The same for experts, of which devices that share a sequence hold copies unless experts lie over them."""
        shared = np.where(self.workload.weights_over_tokens > 0, 1.0, self.plan.seq)
        return self.replicas / np.where(self.workload.experts_over_seq > 0, shared, 1.0)

    @property
    def dense_replicas(self) -> Number:
        """The same for parameters of no expert: unless they are sharded over the expert axis, it holds copies."""
        return self.replicas * np.where(self.workload.weights_over_tokens > 0, 1.0, self.plan.expert)

    @property
    def key_value_parts(self) -> Number:
        """Parts into which the tensor axis divides keys and values, and their weights.

        Beyond the number of their heads Megatron repeats heads; XLA leaves an axis out that does not divide a
        dimension, so each device computes and keeps all of them.
        """
        heads, degree = self.model.kv_heads, self.plan.model
        return np.where(heads % degree == 0, degree, np.where(self.workload.xla > 0, 1.0, np.minimum(heads, degree)))

    @property
    def qkv_width_per_device(self) -> Number:
        """Width of queries, keys and values that one device computes."""
        queries = self.model.qkv_width - self.model.key_value_width
        return queries / self.plan.model + self.model.key_value_width / self.key_value_parts

    @property
    def held_key_value_width(self) -> Number:
        """Width of keys and values that one device holds: those of its own heads, of one at least."""
        heads, degree = self.model.kv_heads, self.plan.model
        return self.model.key_value_width / np.where(heads < degree, heads, degree)

    @property
    def held_qkv_width(self) -> Number:
        """The same, with its queries."""
        return (self.model.qkv_width - self.model.key_value_width) / self.plan.model + self.held_key_value_width
