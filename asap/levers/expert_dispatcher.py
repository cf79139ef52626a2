"""How tokens reach their experts: once for each node (DeepEP), where NCCL sends a copy for each expert."""

import re
from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.megatron.releases import lacks

_NVIDIA = re.compile(r"(a100|a800|h\d|b\d)")
"""Chips for which DeepEP has kernels: Ampere, Hopper, Blackwell in nodes of eight (Megatron Core's MoE README)."""
_BACKEND = "moe_flex_dispatcher_backend"


def _exchanged(run: Run) -> Mapping[str, str]:
    gathers = run.workload.framework == "Megatron-Core" and run.workload.expert_dispatcher == "all_gather"
    return {"moe-token-dispatcher-type": "alltoall"} if gathers and run.plan.degree("expert") > 1 else {}


def _settings(run: Run) -> Mapping[str, str]:
    """Not for experts that are padded to a capacity, which Megatron Core refuses (``transformer_config.py``)."""
    work = run.workload
    by_nccl = work.framework == "Megatron-Core" and work.expert_dispatcher == "all_to_all"
    spread = run.plan.degree("expert") > 1 and work.capacity_factor is None
    if not (by_nccl and spread and _NVIDIA.match(run.chip)) or lacks(run.settings, _BACKEND) is not None:
        return {}
    return {
        "moe-token-dispatcher-type": "flex",
        "moe-flex-dispatcher-backend": "deepep",
        "moe-router-dtype": "fp32",
    }


EXCHANGED = Trial(
    name="token_exchange",
    title="all-to-alls as the token dispatcher",
    changes="time: of what brings tokens to experts; HBM: tokens of other devices; numerics: the order of sums",
    reason="every device gets the tokens of all others, of which its experts compute a part",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/core/transformer/moe/README.md",
    settings=_exchanged,
    workload={"expert_dispatcher": "all_to_all"},
)
TRIAL = Trial(
    name="expert_dispatcher",
    title="DeepEP as the token dispatcher",
    changes="time: of all-to-alls; HBM: buffers of its own; numerics: probabilities of the router in fp32",
    reason="NCCL sends a copy of a token to each of its experts, DeepEP one to each node; it has to be installed",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/megatron/core/transformer/moe/README.md",
    settings=_settings,
    workload={"expert_dispatcher": "deepep"},
    at_most="remove:all-to-all",
)
