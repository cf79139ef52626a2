"""CUDA graphs, where a GPU waits for its host: layers whole, and of layers of experts what is known before tokens are
counted."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.plans import Remat
from asap.plans.remat import RecomputedModules, recomputes_layers
from asap.stacks.megatron.releases import lacks
from asap.stacks.megatron.requirements import has_attention_dropout

_OPTION = "cuda_graph_impl"
_BESIDE_GRAPHS = frozenset(("layernorm", "moe_act"))
"""Modules that are recomputed beside graphs of any of them."""
_CAPTURED = "attn moe_router moe_preprocess"
_MODULES = "https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/training/arguments.py"


def _of_experts(run: Run) -> Mapping[str, str]:
    if not _may_be_captured(run) or not _has_experts(run) or run.workload.capacity_factor is not None:
        return {}
    return {"cuda-graph-impl": "transformer_engine", "cuda-graph-modules": _CAPTURED}


def _of_layers(run: Run) -> Mapping[str, str]:
    return {"cuda-graph-impl": "local"} if _may_be_captured(run) and not _has_experts(run) else {}


def _may_be_captured(run: Run) -> bool:
    """Not beside recomputation of layers, of large modules or of attention with dropout, or activations in host memory,
    which Megatron Core refuses (``transformer_config.py``), nor by a version that has no option for it."""
    work = run.workload
    launched = run.stack == "megatron" and work.framework == "Megatron-Core" and work.cuda_graphs in (None, "none")
    launched = launched and lacks(run.settings, _OPTION) is None
    policy = run.plan.remat
    dropped = policy is Remat.SELECTIVE and has_attention_dropout(run.settings)
    within = isinstance(policy, RecomputedModules) and not {*policy.modules} <= _BESIDE_GRAPHS
    again = policy is None or recomputes_layers(policy) or dropped or within
    return launched and not again and not run.settings.get("cpu_offloading_num_layers")


def _has_experts(run: Run) -> bool:
    return str(run.settings.get("num_experts") or 0) not in ("0", "1")


LAYERS = Trial(
    name="cuda_graphs_of_layers",
    title="each layer as a CUDA graph",
    changes="time: of launches; HBM: buffers of the graphs, which stay; numerics: none",
    reason="the host launches the kernels of a layer more slowly than the GPU runs them; Megatron Core since 0.15",
    source=_MODULES,
    settings=_of_layers,
    workload={"cuda_graphs": "layer"},
    at_most="remove:host",
)

EXPERTS = Trial(
    name="cuda_graphs",
    title="attention and routing of each layer as CUDA graphs",
    changes="time: of launches; HBM: buffers of the graphs, which stay; numerics: none",
    reason="a host that waits for the tokens of each expert launches nothing ahead, and NVIDIA's recipes for mixtures"
    " of experts on Blackwell capture these parts; so says Megatron Core since 0.18, 0.15 to 0.17 have"
    " --cuda-graph-scope",
    source=f"{_MODULES},"
    " https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/v0.3.0/scripts/performance/configs/qwen/"
    "qwen3_workload_base_configs.py",
    settings=_of_experts,
    workload={"cuda_graphs": "module", "graph_modules": tuple(_CAPTURED.split())},
    at_most="remove:host",
)
