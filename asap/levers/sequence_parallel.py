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
    """In place of saved activations in parts, beside which Megatron refuses it (``training/arguments.py``)."""
    words = _SAID_BY.get(run.workload.framework or "", {})
    if not words or run.workload.sequence_parallel is not False or run.plan.degree("model") == 1:
        return {}
    in_parts = run.settings.get("distribute_saved_activations")
    return {**words, "distribute-saved-activations": "false"} if in_parts else words


TRIAL = Trial(
    name="sequence_parallel",
    title="sequence parallelism beside tensor parallelism",
    changes="time: of norms and residuals; HBM: their activations over the tensor degree; numerics: the order of sums",
    reason="every tensor-parallel rank repeats norms and residuals; split along the sequence, no more is sent",
    source="https://arxiv.org/abs/2205.05198",
    settings=_settings,
    workload={"sequence_parallel": True},
    at_most="remove:compute",
)
