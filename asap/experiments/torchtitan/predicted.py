"""Settings of torchtitan that change time or memory and that the prediction does not use (``torchtitan/config``)."""

from asap.experiments.settings.stack_settings import StackSettings
from asap.experiments.settings.unused_settings import note_on_unused

_USUAL: dict[str, object] = {
    "optimizer.early_step_in_backward": False,
    "training.mixed_precision_reduce": "float32",
    "parallelism.fsdp_reshard_after_forward": "default",
    "parallelism.enable_async_tensor_parallel": False,
    "experimental.enable_async_tensor_parallel": False,
    "float8.enable_fsdp_float8_all_gather": False,
    "quantize.linear.float8.enable_fsdp_float8_all_gather": False,
}


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as torchtitan has them."""
    return note_on_unused(settings, _USUAL)
