"""Parts of a layer of experts as CUDA graphs: its host waits for the device, and launches nothing ahead."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial

_CAPTURED = "attn moe_router moe_preprocess"


def _settings(run: Run) -> Mapping[str, str]:
    work = run.workload
    has_experts = str(run.settings.get("num_experts") or 0) not in ("0", "1")
    without_graphs = work.framework == "Megatron-Core" and work.cuda_graphs in (None, "none")
    if run.stack != "megatron" or not (has_experts and without_graphs and work.capacity_factor is None):
        return {}
    return {"cuda-graph-impl": "transformer_engine", "cuda-graph-modules": _CAPTURED}


TRIAL = Trial(
    name="cuda_graphs",
    title="attention and routing of each layer as CUDA graphs",
    changes="time: of launches; HBM: buffers of the graphs, which stay; numerics: none",
    reason="a host that waits for the tokens of each expert launches nothing ahead, and NVIDIA's recipes for mixtures"
    " of experts on Blackwell capture these parts; so says Megatron Core since 0.18, 0.15 to 0.17 have"
    " --cuda-graph-scope",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/training/arguments.py,"
    " https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/v0.3.0/scripts/performance/configs/qwen/"
    "qwen3_workload_base_configs.py",
    settings=_settings,
    workload={"cuda_graphs": "module", "graph_modules": tuple(_CAPTURED.split())},
)
