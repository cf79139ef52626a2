"""The optimizer's state in parts over data parallelism, where every replica holds all of it: Megatron's distributed
optimizer, the first stage of DeepSpeed and nanotron."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial

_SAID_BY: Mapping[str, Mapping[str, str]] = {
    "Megatron-Core": {"use-distributed-optimizer": "true"},
    "Megatron-LM": {"use-distributed-optimizer": "true"},
    "DeepSpeed": {"zero_optimization.stage": "1"},
    "nanotron": {"optimizer.zero_stage": "1"},
}
"""Framework → its words."""


def _settings(run: Run) -> Mapping[str, str]:
    whole = not run.workload.zero_stage and run.plan.degree("replica") > 1
    return _SAID_BY.get(run.workload.framework or "", {}) if whole else {}


TRIAL = Trial(
    name="distributed_optimizer",
    title="the distributed optimizer (ZeRO 1)",
    changes="time: of the optimizer; HBM: its state over the number of replicas; numerics: none",
    reason="every replica holds and updates the whole state; sharded, each holds a part, and no more is sent",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/docs/user-guide/features/dist_optimizer.md",
    settings=_settings,
    workload={"zero_stage": 1},
)
