"""What a device waits for: a host that launches kernels, collectives of tensor parallelism, tokens for its experts."""

import re
from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.plans.remat import RecomputedModules, recomputes_layers

_BESIDE_GRAPHS = frozenset(("layernorm", "moe_act"))
"""Modules that are recomputed beside graphs of any of them."""
_CAPTURED = "attn moe_router moe_preprocess"
_MODULES = "https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/training/arguments.py"


def _graphs_of_experts(run: Run) -> Mapping[str, str]:
    if not _may_be_captured(run) or not _has_experts(run) or run.workload.capacity_factor is not None:
        return {}
    return run.words("cuda_graphs")


def _graphs_of_layers(run: Run) -> Mapping[str, str]:
    return run.words("cuda_graphs_of_layers") if _may_be_captured(run) and not _has_experts(run) else {}


def _may_be_captured(run: Run) -> bool:
    """Not beside recomputation of layers or of large modules, which Megatron refuses (``transformer_config.py``)."""
    policy = run.plan.remat
    within = isinstance(policy, RecomputedModules) and not {*policy.modules} <= _BESIDE_GRAPHS
    again = policy is None or recomputes_layers(policy) or within
    return run.workload.cuda_graphs in (None, "none") and not again


def _has_experts(run: Run) -> bool:
    if run.model is not None:
        return run.model.is_moe
    return str(run.settings.get("num_experts") or 0) not in ("0", "1")


GRAPHS_OF_LAYERS = Trial(
    name="cuda_graphs_of_layers",
    title="each layer as a CUDA graph",
    changes="time: of launches; HBM: buffers of the graphs, which stay; numerics: none",
    reason="the host launches the kernels of a layer more slowly than the GPU runs them; Megatron Core since 0.15",
    source=_MODULES,
    settings=_graphs_of_layers,
    workload={"cuda_graphs": "layer"},
    at_most="remove:host",
)

GRAPHS_OF_EXPERTS = Trial(
    name="cuda_graphs",
    title="attention and routing of each layer as CUDA graphs",
    changes="time: of launches; HBM: buffers of the graphs, which stay; numerics: none",
    reason="a host that waits for the tokens of each expert launches nothing ahead, and NVIDIA's recipes for mixtures"
    " of experts on Blackwell capture these parts; so says Megatron Core since 0.18, 0.15 to 0.17 have"
    " --cuda-graph-scope",
    source=f"{_MODULES},"
    " https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/v0.3.0/scripts/performance/configs/qwen/"
    "qwen3_workload_base_configs.py",
    settings=_graphs_of_experts,
    workload={"cuda_graphs": "module", "graph_modules": tuple(_CAPTURED.split())},
    at_most="remove:host",
)


_AMD = "mi"
"""Prefix of chips on which Transformer Engine has no such buffers."""
_NODE = 8
"""GPUs of a node, whose NVLink the buffers need."""


def _overlapped(run: Run) -> Mapping[str, str]:
    """Only beside sequence parallelism (Megatron Core, ``arguments.py``) and inside of a node; layers of experts run
    without these buffers. torchtitan compiles it
    (``distributed/tensor_parallel.py``)."""
    work, degree = run.workload, run.plan.degree("model")
    words = {} if run.chip.startswith(_AMD) else run.words("tensor_overlap")
    split = 1 < degree <= _NODE and bool(work.sequence_parallel)
    can = split and not _has_experts(run) and work.compiled is not False
    return words if can and not work.overlaps_tensor else {}


TENSOR_OVERLAP = Trial(
    name="tensor_overlap",
    title="overlapping tensor collectives with matrix products",
    changes="time: of exposed tensor collectives; HBM: buffers for them, which stay; numerics: the order of sums",
    reason="Transformer Engine and PyTorch can split each gather and scatter, and send the pieces while the products"
    " compute",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/docs/user-guide/parallelism-guide.md,"
    " https://github.com/pytorch/torchtitan/blob/main/benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md",
    settings=_overlapped,
    workload={"overlaps_tensor": True},
    at_most="remove:communication",
)


_NVIDIA = re.compile(r"(a100|a800|h\d|b\d)")
"""Chips for which DeepEP has kernels: Ampere, Hopper, Blackwell in nodes of eight (Megatron Core's MoE README)."""


def _exchanged(run: Run) -> Mapping[str, str]:
    gathers = run.workload.expert_dispatcher == "all_gather"
    return run.words("token_exchange") if gathers and run.plan.degree("expert") > 1 else {}


def _sent_once(run: Run) -> Mapping[str, str]:
    """Not for experts that are padded to a capacity, which Megatron refuses (``transformer_config.py``)."""
    work = run.workload
    spread = run.plan.degree("expert") > 1 and work.capacity_factor is None
    sent = work.expert_dispatcher == "all_to_all" and spread and _NVIDIA.match(run.chip)
    return run.words("expert_dispatcher") if sent else {}


TOKEN_EXCHANGE = Trial(
    name="token_exchange",
    title="all-to-alls as the token dispatcher",
    changes="time: of what brings tokens to experts; HBM: tokens of other devices; numerics: the order of sums",
    reason="every device gets the tokens of all others, of which its experts compute a part",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/core/transformer/moe/README.md",
    settings=_exchanged,
    workload={"expert_dispatcher": "all_to_all"},
)
EXPERT_DISPATCHER = Trial(
    name="expert_dispatcher",
    title="DeepEP as the token dispatcher",
    changes="time: of all-to-alls; HBM: buffers of its own; numerics: probabilities of the router in fp32",
    reason="NCCL sends a copy of a token to each of its experts, DeepEP one to each node; it has to be installed",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/core/transformer/moe/README.md",
    settings=_sent_once,
    workload={"expert_dispatcher": "deepep"},
    at_most="remove:all-to-all",
)
