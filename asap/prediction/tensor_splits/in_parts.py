"""A product whose inputs are split over the axes of the residual stream along the dimension that it sums over.

Where a weight lies split along its width as the residual stream does, XLA multiplies the parts as they lie and sums up
what they give, over those axes: so it compiles a head that is split by its width over the tensor axis, and reduces the
logits of the whole vocabulary.
"""

from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.tensor_splits.cost import Cost
from asap.prediction.tensor_splits.rings import Fabric


def in_parts_cost(outputs: float, axes: tuple[str, ...], recomputed: float, fabric: Fabric) -> Cost:
    """Of such products forward and backward.

    Args:
        outputs: elements that they write for a token, over all layers of a stage.
        axes: that split the residual stream.
        recomputed: share of them that is computed again.
        fabric: of the plan.
    """
    size = ACTIVATION_BYTES * float(fabric.inputs.tokens_per_microbatch) * outputs
    return Cost(activations=(2 + recomputed) * fabric.over(axes).gather(size))
