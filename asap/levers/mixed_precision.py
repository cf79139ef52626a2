"""Matrix products in 16 bits, where what runs multiplies in fp32."""

from collections.abc import Mapping

from asap.levers.lever import Run, Trial
from asap.stacks.trainer.arguments import SECTION, TRAINER_MICRO_BATCH

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
    if "bf16.enabled" in settings:
        return {}
    return {f"{before}bf16": "true" for before in ("", f"{SECTION}.") if f"{before}{TRAINER_MICRO_BATCH}" in settings}


TRIAL = Trial(
    name="mixed_precision",
    title="bf16 mixed precision",
    changes="time: of all matrix products; HBM: activations of half the size; numerics: 8 bits of mantissa in products",
    reason="it trains in fp32, at a fraction of the chip's rate; the optimizer keeps fp32 weights, but numerics change",
    source="https://arxiv.org/abs/1905.12322",
    settings=_settings,
    workload={"precision": "bf16"},
)
