"""What tensor parallelism leaves whole, norms and residuals, in parts along the sequence."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial

_SAID_BY: Mapping[str, Mapping[str, str]] = {
    "Megatron-Core": {"sequence-parallel": "true"},
    "Megatron-LM": {"sequence-parallel": "true"},
    "nanotron": {"parallelism.tp_mode": "REDUCE_SCATTER"},
}
"""Framework → its words."""


def _settings(run: Run) -> Mapping[str, str]:
    """Not beside saved activations in parts, which Megatron refuses (``training/arguments.py``)."""
    whole = run.workload.sequence_parallel is False and run.plan.degree("model") > 1
    whole = whole and not run.settings.get("distribute_saved_activations")
    return _SAID_BY.get(run.workload.framework or "", {}) if whole else {}


TRIAL = Trial(
    name="sequence_parallel",
    title="sequence parallelism beside tensor parallelism",
    changes="time: of norms and residuals; HBM: their activations over the tensor degree; numerics: the order of sums",
    reason="every tensor-parallel rank repeats norms and residuals; split along the sequence, no more is sent",
    source="https://arxiv.org/abs/2205.05198",
    settings=_settings,
    workload={"sequence_parallel": True},
)
