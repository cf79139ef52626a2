"""What one training step works on, apart from the sharding."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import Count
from asap.models.adapters import Projections

FULL_PRECISION = ("fp32", "float32")
"""Names of 32-bit floating point; a workload that names no precision computes in bf16."""


ContextParallel = Literal["all_gather", "ring", "ulysses"]
"""Keys and values are gathered, or passed around a ring; or heads are swapped for tokens by all-to-alls."""
CudaGraphs = Literal["none", "module", "layer", "step"]
"""What the host of a GPU launches at once."""
GraphModule = Literal["attn", "mlp", "moe", "moe_router", "moe_preprocess"]
"""Parts of a layer that Megatron captures as CUDA graphs of their own."""
ExpertDispatcher = Literal["all_gather", "all_to_all", "deepep"]
"""How tokens reach their experts: a copy for each of them by NCCL's all-to-all, or one for each node, which forwards it
(DeepEP, HybridEP)."""
FrozenPrecision = Literal["fp32", "bf16", "int8", "nf4"]
"""Of weights that are not trained; 8 and 4 bits as in bitsandbytes (arXiv:2208.07339, arXiv:2305.14314)."""
FoldedAxis = Literal["model", "seq"]
"""Of what experts may lie over beside their own axis."""


class Workload(BaseModel):
    """Batch, sequence and numerics of a step. Unknown is ``None``, never a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    global_batch: Count | None = Field(default=None, description="sequences in a step, whole job")
    sequence_length: Count | None = Field(default=None, description="tokens in a sequence")
    precision: str | None = Field(default=None, description="of the matrix multiplications: bf16, fp8, int8, …")
    weight_precision: str | None = Field(
        default=None, description="in which JAX and FSDP keep parameters, gradients and moments: fp32, bf16"
    )
    fsdp_upcasts: bool | None = Field(default=None, description="whether FSDP shards 16-bit weights in fp32")
    gradient_precision: str | None = Field(default=None, description="of the gradients: fp32, bf16")
    first_moment_precision: str | None = Field(
        default=None, description="of Adam's first moment, or of what another optimizer keeps like it: fp32, bf16, int8"
    )
    second_moment_precision: str | None = Field(default=None, description="of Adam's second moment: fp32, bf16, int8")
    adapter_rank: Count | None = Field(
        default=None,
        description="of low-rank adapters that are trained beside frozen weights (LoRA); None: there are none",
    )
    adapted: Projections = Field(default=(), description="projections of a layer that have adapters; none: all")
    frozen_precision: FrozenPrecision | None = Field(
        default=None, description="in which adapters leave the weights; None: as weights that are trained"
    )
    optimizer_in_backward: bool | None = Field(default=None, description="whether the backward pass updates weights")
    optimizer: str | None = Field(default=None, description="adamw, adafactor, sgd, …")
    attention: str | None = Field(default=None, description="kernel: flash, splash, dot_product, …")
    framework: str | None = Field(default=None, description="MaxText, Megatron-LM, …")
    loss_chunks: Count | None = Field(
        default=None, description="parts of the tokens whose logits and loss are computed one after the other"
    )
    fused_linear_cross_entropy: bool | None = Field(
        default=None,
        description="whether one kernel takes the output projection and the loss, and only a part of the logits exists"
        " at a time (Liger, cut cross entropy)",
    )
    head_gathered_once: bool | None = Field(
        default=None, description="whether all parts of the loss use an output weight that was gathered once"
    )
    scan_layers: bool | None = Field(default=None, description="whether a loop runs over layers that are equal")
    pipelined_layers: Count | None = Field(
        default=None,
        description="layers that pipeline stages divide, where these are not the model's: without those that run before"
        " and after the pipeline (MaxText), with the embedding and the loss, each counted as one (Megatron)",
    )
    laid_out_stages: tuple[Count, Count] | None = Field(
        default=None,
        description="pipeline stages, and virtual stages of each, whose numbers of layers the settings say",
    )
    zero_stage: int | None = Field(default=None, ge=0, le=3, description="what data parallelism shards (ZeRO)")
    secondary_shards: Count | None = Field(
        default=None,
        description="devices over which a second copy of sharded parameters lies, from which the backward pass gathers"
        " (ZeRO++ hpZ, arXiv:2306.10209); None: there is none",
    )
    reduction_buffers: float | None = Field(
        default=None, ge=0, description="bytes of a device in which gradients wait to be reduced (DeepSpeed's buckets)"
    )
    context_parallel: ContextParallel | None = Field(
        default=None, description="how devices that share a sequence attend to all of it"
    )
    capacity_factor: float | None = Field(
        default=None,
        gt=0,
        description="slots of an expert over its fair share of the tokens, all of them computed; None: one a token",
    )
    cuda_graphs: CudaGraphs | None = Field(
        default=None,
        description="what is captured as a CUDA graph: the step, each layer, some modules of a layer, nothing",
    )
    graph_modules: tuple[GraphModule, ...] = Field(
        default=(), description="parts of a layer that are captured, where CUDA graphs capture some modules"
    )
    launch_blocking: bool | None = Field(
        default=None, description="whether the host waits for each kernel (CUDA_LAUNCH_BLOCKING)"
    )
    overlaps_experts: bool | None = Field(
        default=None, description="whether all-to-alls of one microbatch run beside the compute of another"
    )
    expert_dispatcher: ExpertDispatcher | None = Field(
        default=None,
        description="all_gather: all tokens to every device with experts; all_to_all: a copy of a token for each of its"
        " experts; deepep: one for each node",
    )
    overlaps_tensor: bool | None = Field(
        default=None,
        description="whether collectives of tensor parallelism run piece by piece beside the products that they feed",
    )
    overlaps_reduction: bool | None = Field(
        default=None, description="whether gradients are reduced during the backward pass; None: as the framework does"
    )
    compiled: bool | None = Field(
        default=None, description="whether torch.compile fuses the elementwise operations of a layer"
    )
    compiled_loss: bool | None = Field(default=None, description="whether torch.compile fuses the loss")
    sequence_parallel: bool | None = Field(
        default=None, description="Megatron sequence parallelism inside the tensor axis (arXiv:2205.05198)"
    )
    sync_each_batch: bool | None = Field(
        default=None,
        description="whether FSDP scatters gradients in every microbatch; None: as the framework does, Hugging Face's"
        " Trainer in the last alone",
    )
    experts_over: tuple[FoldedAxis, ...] = Field(
        default=(),
        description="axes beside expert over which experts lie whole (parallel folding, arXiv:2504.14960): model where"
        " tensor parallelism splits no expert",
    )

    @property
    def tokens(self) -> int | None:
        """Tokens in a step over the whole job."""
        if self.global_batch is None or self.sequence_length is None:
            return None
        return self.global_batch * self.sequence_length
