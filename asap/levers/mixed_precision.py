"""Matrix products in 16 bits, where what runs multiplies in fp32."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.plans.deepspeed.trainer import TRAINER_MICRO_BATCH

_SLOW = ("fp32", "tf32")
_WITHOUT_BF16 = ("v100", "t4")
"""Prefixes of GPUs whose matrix units take fp16 alone."""


def _settings(run: Run) -> Mapping[str, str]:
    if run.workload.precision not in _SLOW or run.chip.startswith(_WITHOUT_BF16):
        return {}
    if run.stack == "maxtext":
        return {"dtype": "bfloat16"}
    if run.stack == "torchtitan":
        return {"training.mixed_precision_param": "bfloat16"}
    if run.stack == "megatron":
        return {"bf16": "true"}
    return _of_trainer(run.settings) if run.stack in ("deepspeed", "accelerate") else {}


def _of_trainer(settings: Mapping[str, object]) -> Mapping[str, str]:
    """Beside the Trainer's other arguments, unless DeepSpeed's configuration decides it."""
    beside = next((key for key in settings if key.rpartition(".")[2] == TRAINER_MICRO_BATCH), None)
    if beside is None or "bf16.enabled" in settings:
        return {}
    return {beside.replace(TRAINER_MICRO_BATCH, "bf16"): "true"}


TRIAL = Trial(
    name="mixed_precision",
    title="matrix products in bf16",
    changes="time: of all matrix products; HBM: activations of half the size; numerics: 8 bits of mantissa in products",
    reason="what runs trains in fp32, at a fraction of the chip's rate; the optimizer keeps fp32, but numerics change",
    source="https://arxiv.org/abs/1905.12322",
    settings=_settings,
    workload={"precision": "bf16"},
)
