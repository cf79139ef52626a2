"""One training step in numbers: what every formula of the step model reads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np

from asap.prediction.step_model.inputs.model import HardwareInputs, ModelInputs, Number, PlanInputs, select


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
    paged_bytes: Number
    """Of these, bytes that wait in host memory where HBM has no room."""
    updated_bytes: Number
    """Bytes per parameter that an update writes: of all, or of adapters beside frozen ones."""
    trained: Number
    """Share of the parameters that have gradients: 1, or that of adapters."""
    backward_products: Number
    """Matrix products of the backward pass for one of the forward pass."""
    dequantized_bytes: Number
    """Bytes per parameter that each pass reads and writes to restore weights held in 4 or 8 bits; 0 where none are."""
    adapter_width: Number
    """Elements of a token that the adapters of a layer read and write in the forward pass."""
    fused_attention: Number
    """Switch: the kernel keeps scores on the chip."""
    score_passes: Number
    """HBM passes over the score matrix, forward."""
    score_bytes: Number
    """Bytes that a score keeps in HBM for the backward pass."""
    megatron_softmax: Number
    """Switch: Megatron's fused softmax takes the scores, where it can."""
    unfused_norm: Number
    """Switch: a norm is several kernels."""
    routing_passes: Number
    """HBM passes over each copy of a token that goes to an expert, beyond the fewest."""
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
    gathers_tokens: Number
    """Switch: every device that has experts gets the tokens of all, and what experts write is reduced and scattered."""
    forwards_tokens: Number
    """Switch: a token crosses the network once for all experts of a node, and is forwarded there."""
    zero_stage: Number
    """ZeRO stage over the replicas, 0 to 2: stage 3 is the ``data`` axis of a plan, and its replicas hold copies."""
    secondary_shards: Number
    """Devices over which a second 16-bit copy of sharded parameters lies, from which the backward pass gathers; 0 where
    there is none."""
    reduction_buffers: Number
    """Bytes in which gradients wait to be reduced."""
    weights_over_tokens: Number
    """Switch: weights are sharded over the context axis as well, and those of no expert over the expert axis."""
    gathers_through_few_ports: Number
    """Switch: sharded parameters come from other nodes at the rate of few ports: so do those of DeepSpeed's ZeRO
    stage 3 in arXiv:2104.04473, table 2, and in XTuner's measurements."""
    updates_on_host: Number
    """Switch: the host updates what is offloaded, so gradients wait there with the optimizer, and parameters come to
    the device a layer at a time (PyTorch, ``CPUOffloadPolicy``; ZeRO-Offload, arXiv:2101.06840)."""
    accumulates_whole: Number
    """Switch: FSDP scatters gradients in the last microbatch alone, and keeps all of them until then, in 16 bits: under
    ``no_sync``, which Hugging Face's Trainer takes (accelerate, ``concept_guides/gradient_synchronization.md``)."""
    reduces_each: Number
    """Switch: where gradients lie sharded over replicas, each microbatch reduces them (ZeRO stage 2,
    ``runtime/zero/stage_1_and_2.py``, ``reduce_ready_partitions_and_remove_grads``)."""
    keeps_expert_outputs: Number
    """Switch: what experts write is weighted after them, and kept for that; Megatron Core weights before the last
    product of an expert (``moe/experts.py``, ``weighted_bias_swiglu_impl``)."""
    capacity_factor: Number
    """Slots of an expert over its fair share of the tokens."""
    graphed_attention: Number
    """Share of a layer's launches for attention that CUDA graphs save the host of a GPU."""
    graphed_mlp: Number
    """The same for its MLP, or its experts."""
    counts_tokens: Number
    """Switch: the host waits for the number of tokens of each expert: no shape is fixed, by XLA or by a capacity."""
    overlaps_experts: Number
    """Switch: all-to-alls of one microbatch run beside the compute of another."""
    transformer_engine: Number
    """Switch: layers are Transformer Engine's modules, whose Python takes the host longer."""
    blocks_launches: Number
    """Switch: the host waits for each kernel, so launches hide behind nothing, nor do collectives."""
    overlaps_tensor: Number
    """Switch: collectives of tensor parallelism run piece by piece beside matrix products (Transformer Engine, user
    buffers; Wang et al., ASPLOS 2023)."""
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


Result = TypeVar("Result")


@dataclass(frozen=True)
class StepInputs:
    """Model, workload, hardware and plan of one step, or of many at once."""

    model: ModelInputs
    workload: WorkloadInputs
    hardware: HardwareInputs
    plan: PlanInputs

    @cached_property
    def sequences_per_microbatch(self) -> Number:
        """Sequences of one batch shard in one microbatch; below one where the batch does not reach all devices."""
        return self.workload.batch / (self.plan.batch_shards * self.plan.microbatches)

    @cached_property
    def tokens_per_microbatch(self) -> Number:
        """Tokens that one device works on in one microbatch, before tensor parallelism."""
        return self.sequences_per_microbatch * self.workload.sequence / self.plan.seq

    @cached_property
    def layers_per_stage(self) -> Number:
        """Layers of the fullest pipeline stage."""
        return np.ceil(self.model.layers / self.plan.stages)

    @cached_property
    def layers_with_loss(self) -> Number:
        """Layers of the last stage. Where stages do not divide the layers, launchers count the embedding and the loss
        as layers (Megatron Core, ``account_for_loss_in_pipeline_split``), or have a layout that does the like."""
        uneven = (self.layers_per_stage * self.plan.stages > self.model.layers) & (self.workload.xla == 0)
        return self.layers_per_stage - np.where(uneven, 1.0, 0.0)

    @cached_property
    def computed_experts(self) -> Number:
        """Routed experts that compute a token: those it visits, and a share of the slots that stay empty (GShard,
        arXiv:2006.16668, section 2.2; Switch Transformers, arXiv:2101.03961, section 2.2)."""
        return self.model.experts_per_token * self.workload.capacity_factor

    @cached_property
    def expert_devices(self) -> Number:
        """Devices over which the experts of a layer lie whole: the expert axis, and those that are folded into it
        (Liu et al., arXiv:2504.14960, section 3.2)."""
        work, layout = self.workload, self.plan
        over_model = select(work.experts_over_model, layout.model, 1.0)
        return layout.expert * over_model * select(work.experts_over_seq, layout.seq, 1.0)

    @cached_property
    def expert_parts(self) -> Number:
        """Parts into which the tensor axis splits an expert."""
        return select(self.workload.experts_over_model, 1.0, self.plan.model)

    @cached_property
    def replicas(self) -> Number:
        """Devices that hold the same shard of the parameters; ZeRO shards the state over them."""
        same_tokens = select(self.workload.weights_over_tokens, 1.0, self.plan.seq)
        return self.plan.replica * self.plan.dcn_replica * same_tokens

    @cached_property
    def expert_replicas(self) -> Number:
        """The same for experts, of which devices that share a sequence hold copies unless experts lie over them."""
        shared = select(self.workload.weights_over_tokens, 1.0, self.plan.seq)
        return self.replicas / select(self.workload.experts_over_seq, shared, 1.0)

    @cached_property
    def dense_replicas(self) -> Number:
        """The same for parameters of no expert: unless they are sharded over the expert axis, it holds copies."""
        return self.replicas * select(self.workload.weights_over_tokens, 1.0, self.plan.expert)

    @cached_property
    def key_value_parts(self) -> Number:
        """Parts into which the tensor axis divides keys and values, and their weights.

        Beyond the number of their heads Megatron repeats heads; XLA leaves an axis out that does not divide a
        dimension, so each device computes and keeps all of them.
        """
        heads, degree = self.model.kv_heads, self.plan.model
        return np.where(
            np.floor(heads / degree) * degree == heads,
            degree,
            select(self.workload.xla, 1.0, np.minimum(heads, degree)),
        )

    @cached_property
    def held_key_value_width(self) -> Number:
        """Width of keys and values that one device holds: those of its own heads, of one at least."""
        heads, degree = self.model.kv_heads, self.plan.model
        return self.model.key_value_width / np.where(heads < degree, heads, degree)

    @cached_property
    def held_qkv_width(self) -> Number:
        """The same, with its queries."""
        return (self.model.qkv_width - self.model.key_value_width) / self.plan.model + self.held_key_value_width


def once(formula: Callable[[StepInputs], Result]) -> Callable[[StepInputs], Result]:
    """A formula that time and memory share: its result is kept with the inputs, as their cached properties are."""
    name = f"{formula.__module__}.{formula.__qualname__}"

    @wraps(formula)
    def kept(inputs: StepInputs) -> Result:
        if name not in inputs.__dict__:
            inputs.__dict__[name] = formula(inputs)
        return inputs.__dict__[name]

    return kept
