"""Why a change of one axis helps, what it costs, and the query that finds its source."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["more", "less"]


@dataclass(frozen=True)
class Principle:
    """What one change of one axis does, and where to read about the part of it that most needs a source."""

    reason: str
    trade_off: str
    claim: Literal["reason", "trade_off"]
    query: str

    @property
    def claimed(self) -> str:
        """The sentence that a citation found by ``query`` stands behind."""
        return self.reason if self.claim == "reason" else self.trade_off


PRINCIPLES: dict[tuple[str, Direction], Principle] = {
    ("replica", "more"): Principle(
        "gradients are reduced once a step and no weights are gathered on the replica axis",
        "every replica holds its own parameters and optimizer state: HBM use grows",
        "reason",
        "pure data parallelism replicated weights gradient all-reduce once a step",
    ),
    ("replica", "less"): Principle(
        "fewer full copies of parameters and optimizer state are kept",
        "the devices that are freed have to be used by an axis that communicates more",
        "reason",
        "memory of replicated optimizer state under pure data parallelism",
    ),
    ("data", "more"): Principle(
        "parameters and optimizer state are sharded further, and the batch is spread over more devices",
        "weights are gathered over a longer ring, which stays hidden only while each device has enough tokens",
        "trade_off",
        "FSDP stays compute-bound with enough tokens per chip, critical batch size",
    ),
    ("data", "less"): Principle(
        "weights are gathered over a shorter ring",
        "each device keeps a larger shard of parameters and optimizer state",
        "trade_off",
        "FSDP shards parameters gradients and optimizer state over the data axis: memory per device by ZeRO stage",
    ),
    ("seq", "more"): Principle(
        "each device keeps a shorter piece of every sequence: activations and attention shrink",
        "keys and values are exchanged in every layer, and a causal mask leaves the pieces unequal work",
        "reason",
        "context parallelism when to use: sequences too long for one chip's memory, batch with too few sequences",
    ),
    ("seq", "less"): Principle(
        "fewer devices exchange keys and values, and each works on longer, more regular pieces of attention",
        "each device holds more tokens of a sequence: activations need more HBM",
        "reason",
        "context parallelism exchanges keys and values in attention, only attention must communicate",
    ),
    ("model", "more"): Principle(
        "each device reads and multiplies a smaller slice of every weight matrix, which cuts HBM traffic and capacity",
        "activations are reduced over the model axis in every layer, on the critical path",
        "trade_off",
        "tensor parallel collectives of activations sit on the critical path and are hard to hide",
    ),
    ("model", "less"): Principle(
        "fewer devices take part in the reductions of activations that sit on the critical path of every layer",
        "each device reads a larger slice of every weight matrix and gathers more weights over the data axis",
        "reason",
        "tensor parallelism degree limit: activation collectives on the critical path",
    ),
    ("expert", "more"): Principle(
        "each device holds fewer experts",
        "tokens cross the network in an all-to-all before and after every expert layer",
        "trade_off",
        "expert parallelism all-to-all before and after each mixture of experts layer",
    ),
    ("expert", "less"): Principle(
        "the all-to-all spans fewer devices",
        "each device holds more experts",
        "reason",
        "expert parallelism all-to-all cost over the expert axis",
    ),
    ("stage", "more"): Principle(
        "each device holds fewer layers, and stages exchange only activations",
        "the pipeline idles while it fills and drains, unless there are many microbatches",
        "trade_off",
        "pipeline parallelism bubble microbatches",
    ),
    ("stage", "less"): Principle(
        "the bubble in which stages wait for each other shrinks",
        "each device holds more layers",
        "reason",
        "pipeline bubble fraction stages",
    ),
    ("remat", "less"): Principle(
        "less of every layer is recomputed in the backward pass",
        "activations that are not recomputed stay in HBM",
        "reason",
        "rematerialisation policy: FLOPs of recomputing the forward pass against HBM for saved activations",
    ),
    ("remat", "more"): Principle(
        "fewer activations are kept in HBM for the backward pass",
        "more of every layer is recomputed",
        "trade_off",
        "rematerialisation policy: FLOPs of recomputing the forward pass against HBM for saved activations",
    ),
    ("host_activations", "more"): Principle(
        "activations wait for the backward pass in host memory, and leave HBM",
        "they are copied over the link to the host and back, which hides only behind enough computation",
        "trade_off",
        "offload activations to host memory rematerialisation PCIe bandwidth",
    ),
    ("host_activations", "less"): Principle(
        "activations are no longer copied to host memory and back",
        "they stay in HBM or are computed again",
        "reason",
        "offload activations to host memory rematerialisation PCIe bandwidth",
    ),
    ("microbatches", "more"): Principle(
        "a device works on fewer sequences at once, so fewer activations and logits wait in HBM",
        "sharded weights are gathered for every microbatch, and products become smaller",
        "reason",
        "gradient accumulation over microbatches: activation memory against repeated weight gathers",
    ),
    ("microbatches", "less"): Principle(
        "sharded weights are gathered less often, and products become larger",
        "more activations and logits wait in HBM; a pipeline's bubble grows",
        "reason",
        "tokens per device and arithmetic intensity: larger per-device batch hides weight gathers",
    ),
    ("pipeline_repeats", "more"): Principle(
        "the pipeline fills sooner, as each device holds several short stages",
        "stages exchange activations more often, and more microbatches are in flight",
        "reason",
        "interleaved pipeline schedule virtual stages bubble",
    ),
    ("pipeline_repeats", "less"): Principle(
        "stages exchange activations less often, and fewer microbatches are in flight",
        "the pipeline idles longer while it fills and drains",
        "trade_off",
        "interleaved pipeline schedule virtual stages bubble",
    ),
    ("optimizer_offload", "more"): Principle(
        "the optimizer's state leaves HBM",
        "it is copied over the link to the host and back in every step, which nothing hides",
        "trade_off",
        "offload optimizer state to host memory PCIe bandwidth",
    ),
    ("optimizer_offload", "less"): Principle(
        "the optimizer's state is no longer copied from the host and back in every step",
        "it needs HBM",
        "reason",
        "offload optimizer state to host memory PCIe bandwidth",
    ),
    ("loss_chunks", "more"): Principle(
        "logits are computed in parts, and only one part is in HBM at a time",
        "the output matrix is read once per part",
        "reason",
        "logits memory of a large vocabulary cross entropy computed in chunks",
    ),
    ("first_moment", "less"): Principle(
        "Adam's first moment takes two bytes a parameter instead of four",
        "the numerics of the optimizer change: compare the loss",
        "reason",
        "optimizer state precision bf16 moments memory per parameter",
    ),
    ("second_moment", "less"): Principle(
        "Adam's second moment takes two bytes a parameter instead of four",
        "the numerics of the optimizer change: compare the loss",
        "reason",
        "optimizer state precision bf16 moments memory per parameter",
    ),
    ("optimizer", "less"): Principle(
        "Muon keeps one moment a parameter, Adam two",
        "another optimizer, with its own learning rate: compare the loss; the time of its matrix products is not"
        " predicted",
        "reason",
        "optimizer state bytes per parameter Adam two moments memory",
    ),
    ("global_batch", "more"): Principle(
        "weights are gathered and gradients reduced for more tokens at once",
        "fewer, larger steps train differently: adapt the learning rate and compare the loss over tokens",
        "reason",
        "tokens per device and arithmetic intensity: larger per-device batch hides weight gathers",
    ),
    ("weight_precision", "less"): Principle(
        "parameters, their gradients and moments take half the bytes",
        "small updates are lost in rounding: compare the loss",
        "reason",
        "bf16 parameters memory per parameter mixed precision training master weights",
    ),
}
