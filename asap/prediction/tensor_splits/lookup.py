"""What it costs to look up tokens in an embedding that lies split.

Rows of which each device has a part of the width are traded for whole rows of its own tokens; rows that lie with other
devices are summed up with zeros from all others. Neither gathers the table (compiled: two all-to-alls of the residual
stream with FSDP). The gradient goes back the same way.
"""

from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.tensor_splits.cost import Cost
from asap.prediction.tensor_splits.rings import Fabric

_OF_TOKENS = {"replica", "data", "seq", "expert"}


def lookup_cost(vocabulary: tuple[str, ...], embed: tuple[str, ...], fabric: Fabric) -> Cost:
    """Of one lookup and its gradient, by the axes that split the rows and the width of the table."""
    inputs = fabric.inputs
    residual = ACTIVATION_BYTES * float(inputs.tokens_per_microbatch * inputs.model.width)
    tokens = [axis for axis in embed if axis in _OF_TOKENS]
    others = fabric.degree(axis for axis in vocabulary if axis in _OF_TOKENS)
    traded = 2 * fabric.over(tokens).trade(residual)
    return Cost(activations=traded + fabric.over(vocabulary).reduce(residual * others))
