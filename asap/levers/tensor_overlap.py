"""Collectives of tensor parallelism while matrix products compute, through user buffers of Transformer Engine."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.megatron.releases import lacks

_OPTION = "tp_comm_overlap"
_AMD = "mi"
"""Prefix of chips on which Transformer Engine has no such buffers."""
_NODE = 8
"""GPUs of a node, whose NVLink the buffers need."""


def _settings(run: Run) -> Mapping[str, str]:
    """Only beside sequence parallelism (Megatron Core, ``arguments.py``) and inside of a node; layers of experts run
    without these buffers, and deterministic mode refuses them (``training/determinism.py``)."""
    work, degree = run.workload, run.plan.degree("model")
    launched = run.stack == "megatron" and work.framework == "Megatron-Core" and not run.chip.startswith(_AMD)
    split = 1 < degree <= _NODE and bool(work.sequence_parallel)
    dense = str(run.settings.get("num_experts") or 0) in ("0", "1")
    refused = run.settings.get("deterministic_mode") or lacks(run.settings, _OPTION) is not None
    if not (launched and split and dense) or refused or work.overlaps_tensor:
        return {}
    return {"tp-comm-overlap": "true"}


TRIAL = Trial(
    name="tensor_overlap",
    title="overlapping tensor collectives with matrix products",
    changes="time: of exposed tensor collectives; HBM: buffers for them, which stay; numerics: the order of sums",
    reason="Transformer Engine can split each gather and scatter, and send the pieces while the products compute",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/docs/user-guide/parallelism-guide.md",
    settings=_settings,
    workload={"overlaps_tensor": True},
    at_most="remove:communication",
)
