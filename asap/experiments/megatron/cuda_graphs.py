"""What Megatron captures as CUDA graphs (``megatron/core/transformer/cuda_graph_config.py``)."""

from typing import get_args

from asap.experiments.settings.stack_settings import StackSettings
from asap.models.workload import CudaGraphs, GraphModule

_IMPLEMENTATIONS = ("none", "local", "transformer_engine", "full_iteration")
_WHOLE_STEP = "full_iteration"
_MLPS = {"mlp", "moe"}


def cuda_graphs(settings: StackSettings) -> CudaGraphs | None:
    """By ``cuda_graph_impl`` and ``cuda_graph_modules``, and by their names of earlier releases; ``None``: not said.

    Raises:
        ConfigError: an implementation that Megatron does not have.
    """
    said = settings.text("cuda_graph_impl")
    if said is not None and said not in _IMPLEMENTATIONS:
        raise settings.wrong("cuda_graph_impl", f"one of {', '.join(_IMPLEMENTATIONS)}")
    earlier = [settings.flag(key) for key in ("enable_cuda_graph", "external_cuda_graph") if key in settings]
    if said == "none" or (said is None and not any(earlier)):
        return "none" if said or earlier else None
    modules = _modules(settings)
    if _WHOLE_STEP in (said, *modules):
        return "step"
    whole = not modules or modules == {"full"} or ("attn" in modules and modules & _MLPS)
    return "layer" if whole else "module"


def graph_modules(settings: StackSettings) -> tuple[GraphModule, ...]:
    """The parts of a layer that are captured, where that is not the whole layer."""
    if cuda_graphs(settings) != "module":
        return ()
    captured = _modules(settings)
    return tuple(module for module in get_args(GraphModule) if module in captured)


def _modules(settings: StackSettings) -> set[str]:
    words = settings.words("cuda_graph_modules") or settings.words("cuda_graph_scope")
    return {module for word in words for module in word.split(",") if module}
