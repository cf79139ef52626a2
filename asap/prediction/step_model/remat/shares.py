"""What of a layer is computed again and what is kept: shares of its matrix products and tensors."""

from dataclasses import dataclass

from asap.prediction.step_model.inputs import Number


@dataclass(frozen=True, slots=True)
class RematShares:
    """Fields of :class:`PlanInputs` of the same names."""

    recompute_qkv: Number = 0.0
    recompute_out: Number = 0.0
    recompute_mlp: Number = 0.0
    recompute_attention: Number = 1.0
    recompute_elementwise: Number = 1.0
    kept_layer: Number = 0.0
    kept_qkv: Number = 0.0
    kept_context: Number = 0.0
    kept_out: Number = 0.0
    kept_mlp: Number = 0.0
    freed_norms: Number = 0.0
    freed_qkv: Number = 0.0
    freed_mlp: Number = 0.0
    freed_experts: Number = 0.0
    freed_shared_experts: Number = 0.0
    freed_activation: Number = 0.0
    host_qkv: Number = 0.0
    host_context: Number = 0.0
    host_out: Number = 0.0
    host_mlp: Number = 0.0
