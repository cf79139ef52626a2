"""What Megatron-LM's arguments say of a step besides its plan: batch, sequence, precision, kernels, sharded state."""

from collections.abc import Mapping
from typing import get_args

from asap.models import Workload
from asap.models.workload import ContextParallel, CudaGraphs, ExpertDispatcher, GraphModule
from asap.stacks.megatron.degrees import experts_over, is_fully_sharded
from asap.stacks.megatron.releases import is_megatron_deepspeed, stage_of
from asap.stacks.megatron.stages import counted_layers
from asap.stacks.stack_settings import StackSettings

CORE, DEEPSPEED = "Megatron-Core", "Megatron-DeepSpeed"
"""Frameworks that have these arguments, as a workload names them."""
PRECISION = frozenset(("bf16", "fp16", "fp8_format", "fp4_format"))
"""Arguments that decide the precision of matrix products."""
_OF_FSDP = ("megatron_fsdp_grad_comm_dtype", "megatron_fsdp_main_grads_dtype")
_DECIDED_BY = {
    "precision": PRECISION,
    "gradient_precision": frozenset(
        ("grad_reduce_in_bf16", "main_grads_dtype", "accumulate_allreduce_grads_in_fp32", "bf16", *_OF_FSDP)
    ),
    "optimizer": frozenset(("optimizer",)),
    "sequence_parallel": frozenset(("sequence_parallel",)),
}
"""Fields of a workload by the arguments that decide them."""
_OF_TORCH = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "uint8": "fp8", "float32": "fp32"}
_CONTEXT_PARALLEL: Mapping[str, ContextParallel] = {
    "p2p": "ring", "a2a": "ulysses", "all_gather": "all_gather", "a2a+p2p": "ring",
}  # fmt: skip
_DISPATCHERS: Mapping[str, ExpertDispatcher] = {
    "allgather": "all_gather", "alltoall": "all_to_all", "alltoall_seq": "all_to_all",
}  # fmt: skip
_IMPLEMENTATIONS, _WHOLE_STEP = ("none", "local", "transformer_engine", "full_iteration"), "full_iteration"
_FLASH = (
    "use_flash_attn", "use_flash_attn_v1", "use_flash_attn_v2", "use_flash_attn_triton", "use_flash_attn_builder",
)  # fmt: skip


def workload_of(
    settings: StackSettings,
    framework: str,
    batch: int | None,
    unsettled: frozenset[str] = frozenset(),
    layers: int | None = None,
) -> Workload:
    """The workload that arguments describe.

    Args:
        settings: the arguments by name.
        framework: that runs them: ``CORE``, ``DEEPSPEED``, NeMo or Megatron-Bridge.
        batch: sequences in a step of the whole job.
        unsettled: arguments that only a run can tell; what hangs on one is unknown.
        layers: decoder layers.

    Raises:
        ConfigError: a value of the wrong kind.
    """
    old = settings.flag("use_legacy_models") or settings.text("transformer_impl") == "local"
    graphs, captured = _cuda_graphs(settings), _captured(settings)
    split = (settings.count("tensor_model_parallel_size") or 1) > 1
    padded = settings.flag("moe_pad_expert_input_to_capacity")  # a factor alone drops tokens and pads nothing
    said = Workload(
        global_batch=batch,
        sequence_length=settings.count("seq_length"),
        precision=_precision(settings),
        gradient_precision=_gradient_precision(settings, framework),
        first_moment_precision=_moment(settings, "exp_avg_dtype"),
        second_moment_precision=_moment(settings, "exp_avg_sq_dtype"),
        optimizer=settings.text("optimizer", "adam"),
        attention=_attention(settings),
        framework="Megatron-LM" if old and framework == CORE else framework,
        zero_stage=_zero_stage(settings),
        context_parallel=_context_parallel(settings),
        capacity_factor=settings.positive_number("moe_expert_capacity_factor") if padded else None,
        cuda_graphs=graphs,
        graph_modules=tuple(each for each in get_args(GraphModule) if graphs == "module" and each in captured),
        overlaps_experts=settings.flag("overlap_moe_expert_parallel_comm") or None,
        overlaps_tensor=settings.flag("tp_comm_overlap") or None,
        expert_dispatcher=_expert_dispatcher(settings, framework),
        pipelined_layers=counted if (counted := counted_layers(settings, layers)) != layers else None,
        sequence_parallel=settings.flag("sequence_parallel") and split,
        experts_over=experts_over(settings),
    )
    return said.model_copy(update={field: None for field, keys in _DECIDED_BY.items() if unsettled & keys})


def _context_parallel(settings: StackSettings) -> ContextParallel | None:
    """By the first layer's ``cp_comm_type`` (``transformer_config.py``); ``None`` without context parallelism."""
    if (settings.count("context_parallel_size") or 1) == 1:
        return None
    said = next(iter(settings.words("cp_comm_type")), "p2p")
    if said not in _CONTEXT_PARALLEL:
        raise settings.wrong("cp_comm_type", f"one of {', '.join(_CONTEXT_PARALLEL)}")
    return _CONTEXT_PARALLEL[said]


def _expert_dispatcher(settings: StackSettings, framework: str) -> ExpertDispatcher | None:
    """By the kind, and the backend of a flexible one (``transformer_config.py``); Megatron-LM gathers where nothing is
    said (``arguments.py``), and of what builds on it that is not known."""
    if not settings.whole("num_experts"):
        return None
    kind = settings.text("moe_token_dispatcher_type", "allgather" if framework == CORE else None)
    flexible = kind == "flex" or settings.flag("moe_enable_deepep")
    return "deepep" if flexible else _DISPATCHERS.get(kind or "")


def _moment(settings: StackSettings, key: str) -> str | None:
    """Of a moment that a precision-aware optimizer keeps in another precision than fp32."""
    said = _dtype(settings, key)
    return said if said in ("fp16", "bf16", "fp8") and settings.flag("use_precision_aware_optimizer") else None


def _dtype(settings: StackSettings, key: str) -> str:
    """A type as arguments call it, also where a YAML or a program has PyTorch's name: ``torch.bfloat16``."""
    said = settings.get(key)
    text = str(said.get("_target_") if isinstance(said, Mapping) else said).removeprefix("torch.")
    return _OF_TORCH.get(text, text)


def _precision(settings: StackSettings) -> str:
    if said := next((kind for kind in ("fp8", "fp4") if f"{kind}_format" in settings), None):
        return said
    return next((kind for kind in ("bf16", "fp16") if settings.flag(kind)), "fp32")


def _gradient_precision(settings: StackSettings, framework: str) -> str | None:
    """Megatron-LM accumulates and reduces in fp32 under bf16 unless told otherwise (``training/arguments.py``)."""
    of_fsdp = [settings.text(key) for key in _OF_FSDP if settings.flag("use_megatron_fsdp")]
    if said := next((dtype for dtype in of_fsdp if dtype in ("bf16", "fp32")), None):
        return said
    if settings.flag("grad_reduce_in_bf16") or _dtype(settings, "main_grads_dtype") == "bf16":
        return "bf16"
    if settings.flag("accumulate_allreduce_grads_in_fp32") or settings.flag("grad_reduce_in_fp32"):
        return "fp32"
    return "fp32" if framework == CORE and settings.flag("bf16") else None


def _attention(settings: StackSettings) -> str | None:
    """The kernel; Transformer Engine's ``auto`` takes a fused one, and Megatron's own attention its fused softmax."""
    softmax = "torch" if settings.flag("no_masked_softmax_fusion") else "fused softmax"
    named = {"fused": "cudnn flash", "flash": "flash", "unfused": softmax, "local": softmax}
    if (backend := settings.text("attention_backend")) in named:
        return named[backend]
    if any(settings.flag(key) for key in _FLASH):
        return "flash"
    own = is_megatron_deepspeed(settings) or settings.text("transformer_impl") == "local"
    return softmax if own else None


def _zero_stage(settings: StackSettings) -> int | None:
    if is_megatron_deepspeed(settings):
        return stage_of(settings) or None
    if is_fully_sharded(settings):
        return 3
    if settings.flag("use_megatron_fsdp"):
        strategy = settings.text("data_parallel_sharding_strategy")
        return {"no_shard": None, "optim": 1, "optim_grads": 2}.get(strategy or "")
    return 1 if settings.flag("use_distributed_optimizer") else None


def _cuda_graphs(settings: StackSettings) -> CudaGraphs | None:
    """By ``cuda_graph_impl`` and ``cuda_graph_modules``, and by their names of earlier releases; ``None``: not said."""
    said = settings.choice("cuda_graph_impl", _IMPLEMENTATIONS)
    earlier = [settings.flag(key) for key in ("enable_cuda_graph", "external_cuda_graph") if key in settings]
    if said == "none" or (said is None and not any(earlier)):
        return "none" if said or earlier else None
    modules = _captured(settings)
    if _WHOLE_STEP in (said, *modules):
        return "step"
    whole = not modules or modules == {"full"} or ("attn" in modules and modules & {"mlp", "moe"})
    return "layer" if whole else "module"


def _captured(settings: StackSettings) -> set[str]:
    """Parts of a layer that are captured, where that is not the whole layer."""
    words = settings.words("cuda_graph_modules") or settings.words("cuda_graph_scope")
    return {module for word in words for module in word.split(",") if module}
