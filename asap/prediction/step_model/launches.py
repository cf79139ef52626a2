"""Launching kernels: a GPU waits for its host where layers are small (PyTorch, "CUDA semantics")."""

from dataclasses import dataclass

import numpy as np

from asap.models import Workload
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.inputs import Number, StepInputs, select

GRAPH_LAUNCH = 2.5e-6
"""Seconds of the host for a CUDA graph; each of its kernels adds a nanosecond (NVIDIA, "Constant Time Launch for
Straight-Line CUDA Graphs", CUDA 12.6, 2024)."""
ROUTING = {"moe_router": 0.25, "moe_preprocess": 0.25}
"""Share of the launches of a layer of experts, without its attention, that each captured module saves: scores, and
tokens counted for each expert, come before dispatch, experts and combination (Megatron Core, ``moe_layer.py``)."""


@dataclass(frozen=True, slots=True)
class Launches:
    """Seconds of the host to launch a layer in all of its passes: what the device may hide, and what it waits for."""

    ahead: Number
    awaited: Number


def graphed_shares(workload: Workload) -> tuple[float, float]:
    """Shares of the launches that CUDA graphs save the host: of attention, and of the MLP or the experts."""
    captured = {*workload.graph_modules}
    if workload.cuda_graphs in ("layer", "step"):
        return 1.0, 1.0
    routing = sum(ROUTING.get(module, 0.0) for module in captured)
    return float("attn" in captured), 1.0 if captured & {"mlp", "moe"} else routing


def launches(inputs: StepInputs, constants: Constants) -> Launches:
    """Launches of a layer, mean over dense layers and those of experts.

    Attention is half of a dense layer's launches, and the same in a layer of experts. A host that does not know how
    many tokens each expert gets waits for the device to count them, and launches nothing ahead of it (Megatron Core,
    ``moe/token_dispatcher.py``, ``cuda_sync_point``).
    """
    work, layout, moe_share = inputs.workload, inputs.plan, inputs.model.moe_share
    passes = (3 + layout.recompute_layer) * (1 - inputs.hardware.tpu)
    collectives = constants.collective_floor * (layout.model > 1) / 2
    half = (constants.kernel_floor + constants.engine_floor * work.transformer_engine) / 2 + collectives
    dense = half * (1 - work.graphed_attention) + half * (1 - work.graphed_mlp) * (1 - moe_share)
    experts = (constants.expert_floor + collectives) * (1 - work.graphed_mlp) * moe_share
    graphs = GRAPH_LAUNCH * np.maximum(work.graphed_attention, work.graphed_mlp)
    counted = select(work.counts_tokens, experts, 0.0)
    return Launches(ahead=(dense + graphs + experts - counted) * passes, awaited=counted * passes)
