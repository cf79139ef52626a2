"""Why a change of one axis or lever helps, what it costs, and the note that says so."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["more", "less"]


@dataclass(frozen=True)
class Principle:
    """What one change of one axis does, and where to read about the part of it that most needs a source."""

    reason: str
    trade_off: str
    claim: Literal["reason", "trade_off"]
    note: str
    """ID in the knowledge base."""

    @property
    def claimed(self) -> str:
        """The sentence that the note stands behind."""
        return self.reason if self.claim == "reason" else self.trade_off


HOST_FOR_RECOMPUTATION = Principle(
    "tensors that the backward pass computed again wait for it in host memory",
    "activations are copied over the link to the host and back, which hides only behind enough computation",
    "trade_off",
    "maxtext-remat-offload-breakeven",
)
HOST_MAKES_ROOM = Principle(
    "some activations wait in host memory, which makes room in HBM for tensors that were computed again",
    "what waits in host memory is copied over the link and back, which hides only behind enough computation",
    "trade_off",
    "maxtext-remat-offload-breakeven",
)
SELECTIVE: dict[Direction, Principle] = {
    "less": Principle(
        "attention's scores are not computed again in the backward pass",
        "what attention's scores are made of stays in HBM",
        "reason",
        "transformers-remat-attention-extra",
    ),
    "more": Principle(
        "attention's scores and what they are made of do not wait for the backward pass in HBM",
        "attention computes its scores again",
        "trade_off",
        "transformers-remat-attention-extra",
    ),
}
"""Between no recomputation and that of attention alone."""
PRINCIPLES: dict[tuple[str, Direction], Principle] = {
    ("replica", "more"): Principle(
        "gradients are reduced once a step and no weights are gathered on the replica axis",
        "every replica holds its own parameters and, without ZeRO, its own optimizer state: HBM use grows",
        "reason",
        "training-dp-backward-allreduce",
    ),
    ("replica", "less"): Principle(
        "fewer full copies of the parameters and, without ZeRO, of the optimizer state are kept",
        "the devices that are freed have to be used by an axis that communicates more",
        "reason",
        "training-dp-memory-limit",
    ),
    ("data", "more"): Principle(
        "parameters and optimizer state are sharded further, and the batch is spread over more devices",
        "weights are gathered over a longer ring, which stays hidden only while each device has enough tokens",
        "trade_off",
        "training-fsdp-critical-batch",
    ),
    ("data", "less"): Principle(
        "weights are gathered over a shorter ring",
        "each device keeps a larger shard of parameters and optimizer state",
        "trade_off",
        "training-zero-stages",
    ),
    ("seq", "more"): Principle(
        "each device keeps a shorter piece of every sequence: activations and attention shrink",
        "keys and values are exchanged in every layer, and a causal mask leaves the pieces unequal work",
        "reason",
        "context-when-to-use",
    ),
    ("seq", "less"): Principle(
        "fewer devices exchange keys and values, and each works on longer, more regular pieces of attention",
        "each device holds more tokens of a sequence: activations need more HBM",
        "reason",
        "training-context-parallelism",
    ),
    ("model", "more"): Principle(
        "each device reads and multiplies a smaller slice of every weight matrix, which cuts HBM traffic and capacity",
        "activations are reduced over the model axis in every layer, on the critical path",
        "trade_off",
        "training-tp-critical-path",
    ),
    ("model", "less"): Principle(
        "fewer devices take part in the reductions of activations that sit on the critical path of every layer",
        "each device reads a larger slice of every weight matrix and gathers more weights over the data axis",
        "reason",
        "training-tp-critical-path",
    ),
    ("expert", "more"): Principle(
        "each device holds fewer experts",
        "tokens cross the network in an all-to-all before and after every expert layer",
        "trade_off",
        "transformers-moe-alltoall",
    ),
    ("expert", "less"): Principle(
        "the all-to-all spans fewer devices",
        "each device holds more experts",
        "reason",
        "gpus-ep-alltoall-cost",
    ),
    ("stage", "more"): Principle(
        "each device holds fewer layers, and stages exchange only activations",
        "the pipeline idles while it fills and drains, unless there are many microbatches",
        "trade_off",
        "training-pipeline-bubble",
    ),
    ("stage", "less"): Principle(
        "the bubble in which stages wait for each other shrinks",
        "each device holds more layers",
        "reason",
        "training-pipeline-bubble",
    ),
    ("remat", "less"): Principle(
        "less of every layer is recomputed in the backward pass",
        "activations that are not recomputed stay in HBM",
        "reason",
        "transformers-block-remat",
    ),
    ("remat", "more"): Principle(
        "fewer activations are kept in HBM for the backward pass",
        "more of every layer is recomputed",
        "trade_off",
        "transformers-block-remat",
    ),
    ("host_activations", "more"): Principle(
        "activations wait for the backward pass in host memory, and leave HBM",
        "activations are copied over the link to the host and back, which hides only behind enough computation",
        "trade_off",
        "maxtext-remat-offload-breakeven",
    ),
    ("host_activations", "less"): Principle(
        "activations are no longer copied to host memory and back",
        "activations stay in HBM or are computed again",
        "reason",
        "maxtext-remat-offload-breakeven",
    ),
    ("microbatches", "more"): Principle(
        "a device works on fewer sequences at once, so fewer activations and logits wait in HBM",
        "products become smaller",
        "reason",
        "maxtext-sharding-gradient-accumulation",
    ),
    ("microbatches", "less"): Principle(
        "products become larger",
        "more activations and logits wait in HBM",
        "reason",
        "maxtext-sharding-gradient-accumulation",
    ),
    ("pipeline_repeats", "more"): Principle(
        "the pipeline fills sooner, as each device holds several short stages",
        "stages exchange activations more often, and more microbatches are in flight",
        "reason",
        "pipeline-interleaved",
    ),
    ("pipeline_repeats", "less"): Principle(
        "stages exchange activations less often, and fewer microbatches are in flight",
        "the pipeline idles longer while it fills and drains",
        "trade_off",
        "pipeline-interleaved",
    ),
    ("optimizer_offload", "more"): Principle(
        "the optimizer's state leaves HBM",
        "the optimizer's state is copied to the host and back in every step, which nothing hides",
        "trade_off",
        "maxtext-sharding-optimizer-offload",
    ),
    ("optimizer_offload", "less"): Principle(
        "the optimizer's state is no longer copied from the host and back in every step",
        "the optimizer's state needs HBM",
        "reason",
        "maxtext-sharding-optimizer-offload",
    ),
    ("parameter_offload", "more"): Principle(
        "parameters leave HBM between steps",
        "parameters are copied from the host and back in every step, and HBM at the peak stays as it is",
        "trade_off",
        "maxtext-sharding-parameter-offload",
    ),
    ("parameter_offload", "less"): Principle(
        "parameters are no longer copied from the host and back in every step",
        "parameters stay in HBM between steps; the peak does not grow, as a step holds all of them anyway",
        "reason",
        "maxtext-sharding-parameter-offload",
    ),
    ("sequence_parallel", "more"): Principle(
        "devices of the tensor axis no longer repeat norms and residuals, and each keeps a part of them",
        "none is known: as many bytes are sent, in two halves",
        "reason",
        "context-megatron-sp",
    ),
    ("loss_chunks", "more"): Principle(
        "logits are computed in parts, and only one part is in HBM at a time",
        "the output matrix is read once per part",
        "reason",
        "maxtext-sharding-vocab-tiling",
    ),
    ("first_moment", "less"): Principle(
        "Adam's first moment takes two bytes a parameter instead of four",
        "the numerics of the optimizer change: compare the loss",
        "reason",
        "training-dp-memory-limit",
    ),
    ("second_moment", "less"): Principle(
        "Adam's second moment takes two bytes a parameter instead of four",
        "the numerics of the optimizer change: compare the loss",
        "reason",
        "training-dp-memory-limit",
    ),
    ("optimizer", "less"): Principle(
        "Muon keeps one moment a parameter, Adam two",
        "another optimizer, with its own learning rate: compare the loss; the time of its matrix products is not"
        " predicted",
        "reason",
        "training-dp-memory-limit",
    ),
    ("global_batch", "more"): Principle(
        "weights are gathered and gradients reduced for more tokens at once",
        "fewer, larger steps train differently: adapt the learning rate and compare the loss over tokens",
        "reason",
        "maxtext-sharding-fsdp-intensity",
    ),
    ("weight_precision", "less"): Principle(
        "parameters, their gradients and moments take half the bytes",
        "small updates are lost in rounding: compare the loss",
        "reason",
        "training-dp-memory-limit",
    ),
}
