"""An MLP whose hidden dimension no longer follows the tensor axis.

XLA splits the hidden activations as the weights say. Where none of them says the tensor axis, a dense MLP multiplies
the residual stream as it lies, in parts of its width, and reduces the hidden activations whole, each time that they are
computed: five times a layer under full rematerialisation, in a compiled step. Experts get tokens of full width, so each
device along the tensor axis computes the same.
"""

from dataclasses import dataclass

from asap.prediction.step_model.communication import communication
from asap.prediction.step_model.compute import ACTIVATION_BYTES, BACKWARD_MATMUL
from asap.prediction.step_model.tpu_buffers import load_tpu_buffers
from asap.prediction.tensor_splits.cost import Cost
from asap.prediction.tensor_splits.rings import Fabric

_READ_BY_DERIVATIVES = 3
"""Tensors of hidden width that a layer keeps beside those of its products (``step_model/activations.py``)."""


@dataclass(frozen=True)
class Undivided:
    """Layers of one stage with such an MLP: its hidden width, the axes that the plan has for it, whether of experts."""

    layers: float
    width: int
    axes: tuple[str, ...]
    routed: bool

    def rows(self, fabric: Fabric) -> float:
        """Tokens of a microbatch on one device; those of experts come once for each expert that they visit."""
        tokens = float(fabric.inputs.tokens_per_microbatch)
        return tokens * float(fabric.inputs.computed_experts) if self.routed else tokens

    def repeated(self, fabric: Fabric) -> float:
        """Share of the hidden activations of a device that other devices hold as well."""
        return 1 - 1 / fabric.degree(self.axes)


def undivided_cost(mlp: Undivided, fabric: Fabric) -> Cost:
    """What it costs more than an MLP that is split as in the plan."""
    inputs, constants = fabric.inputs, fabric.constants
    model, plan = inputs.model, inputs.plan
    into, rows, share = float(model.up_projections), mlp.rows(fabric), mlp.repeated(fabric)
    before = float(communication(inputs, constants).tensor_layer / model.sequential_blocks)
    memory = float(inputs.hardware.hbm_bandwidth * constants.memory_efficiency)
    traffic = ACTIVATION_BYTES * rows * (into + 1) * mlp.width * share * (2 + float(plan.recompute_elementwise))
    products = float(constants.elementwise_traffic) * traffic / memory
    if mlp.routed:
        passes = 1 + BACKWARD_MATMUL + float(plan.recompute_mlp)
        flops = 2 * rows * (into + 1) * mlp.width * float(model.width) * share * passes
        rate = float(inputs.hardware.peak_matmul * constants.matmul_efficiency * constants.grouped_efficiency)
        return Cost(activations=-mlp.layers * before, products=mlp.layers * (products + flops / rate))
    again = min(float(plan.recompute_mlp) * (into + 1) / into, 1.0)
    reductions = into * (1 + again) + 1
    reduced = reductions * fabric.over(mlp.axes).reduce(ACTIVATION_BYTES * rows * mlp.width)
    return Cost(activations=mlp.layers * (reduced - before), products=mlp.layers * products)


def undivided_bytes(mlp: Undivided, fabric: Fabric) -> float:
    """HBM that its activations take more: those of all layers that are kept, and those of one that are in hand."""
    plan, into = fabric.inputs.plan, float(fabric.inputs.model.up_projections)
    kept = float(plan.kept_mlp) * into + float(plan.kept_layer) * (into + _READ_BY_DERIVATIVES)
    tensors = mlp.layers * kept + load_tpu_buffers().hidden
    return ACTIVATION_BYTES * mlp.rows(fabric) * mlp.width * mlp.repeated(fabric) * tensors
