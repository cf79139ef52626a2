"""A second copy of ZeRO 3's parameters inside each node, from which the backward pass gathers (ZeRO++ hpZ)."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial

_SIZE = "zero_optimization.zero_hpz_partition_size"


def _settings(run: Run) -> Mapping[str, str]:
    spread = run.node is not None and run.plan.degree("data") > run.node and run.workload.zero_stage == 3
    offered = run.stack == "deepspeed" and spread and not run.workload.secondary_shards
    return {_SIZE: str(run.node)} if offered else {}


TRIAL = Trial(
    name="secondary_shards",
    title="a second copy of the parameters inside each node (ZeRO++ hpZ)",
    changes="time: of gathers in the backward pass; HBM: 16-bit parameters over the devices of a node; numerics: none",
    reason="ZeRO 3 gathers every weight over all nodes twice; from a copy inside the node the backward pass does not",
    source="https://arxiv.org/abs/2306.10209",
    settings=_settings,
    of_run=lambda run: {"secondary_shards": run.node},
)
