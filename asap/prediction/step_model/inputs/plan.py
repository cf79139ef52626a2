"""The plan, in numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from asap.prediction.step_model.inputs.number import Number


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
