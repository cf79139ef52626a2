"""DeepSpeed's settings where Accelerate's configuration says them itself, without a JSON beside it
(huggingface/accelerate, ``DeepSpeedPlugin`` in ``utils/dataclasses.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.accelerate.settings import SIZES, lines_to_paste
from asap.plans.deepspeed.settings import ACCUMULATION, SEQUENCE, STAGE
from asap.plans.deepspeed.trainer import SECTION

CONFIG = "deepspeed_config"
IN_FILE = f"{CONFIG}.deepspeed_config_file"
WORDS = {
    STAGE: f"{CONFIG}.zero_stage",
    "zero_optimization.offload_optimizer.device": f"{CONFIG}.offload_optimizer_device",
    "zero_optimization.offload_param.device": f"{CONFIG}.offload_param_device",
    ACCUMULATION: f"{CONFIG}.gradient_accumulation_steps",
    SEQUENCE: f"{SIZES}.{SIZES}_sp_size",
}
"""DeepSpeed's settings and what Accelerate calls them."""
MARK = "distributed_type"
"""Among a run's settings of DeepSpeed: Accelerate says them itself."""


def is_said_by_accelerate(settings: Mapping[str, object] | None) -> bool:
    """Whether settings of DeepSpeed stand in Accelerate's configuration."""
    return settings is not None and str(settings.get(MARK)).upper() == "DEEPSPEED"


def deepspeed_lines(changed: Mapping[str, object]) -> str:
    """Changed settings of DeepSpeed in Accelerate's words.

    Raises:
        PlanError: it has none for one of them.
    """
    unsaid = [key for key in changed if key not in WORDS and not key.startswith(f"{SECTION}.")]
    if unsaid:
        raise PlanError(
            f"Accelerate says {plain(', '.join(unsaid), 80)} in a DeepSpeed JSON alone", hint=f"{IN_FILE}: FILE.json"
        )
    return lines_to_paste({WORDS.get(key, key): value for key, value in changed.items()})
