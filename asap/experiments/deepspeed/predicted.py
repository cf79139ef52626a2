"""Settings of DeepSpeed that change time or memory and that the prediction does not use
(https://www.deepspeed.ai/docs/config-json)."""

from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.unused_settings import note_on_unused

_ZERO, _RECOMPUTED = "zero_optimization", "activation_checkpointing"
_USUAL: dict[str, object] = {
    f"{_ZERO}.zero_quantized_weights": False,
    f"{_ZERO}.zero_quantized_gradients": False,
    f"{_ZERO}.offload_optimizer.ratio": 1.0,
    f"{_ZERO}.zenflow": False,
    f"{_RECOMPUTED}.cpu_checkpointing": False,
    f"{_RECOMPUTED}.partition_activations": False,
    "communication_data_type": False,
    "data_types.grad_accum_dtype": False,
}
_DEVICES = (f"{_ZERO}.offload_optimizer.device", f"{_ZERO}.offload_param.device")
_DISK = "nvme"
_COMPRESSED = ("onebit", "zeroone")
"""How the names of optimizers begin that exchange gradients of a bit."""


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """Notes that name them; none where all are as DeepSpeed has them."""
    notes = list(note_on_unused(settings, _USUAL))
    if disk := [key for key in _DEVICES if str(settings.get(key)).casefold() == _DISK]:
        notes.append(f"{' and '.join(disk)} is {_DISK}, taken as the memory of the host")
    if str(settings.get("optimizer.type")).casefold().startswith(_COMPRESSED):
        notes.append("optimizer.type compresses what is exchanged; taken as exchanged whole")
    return tuple(notes)
