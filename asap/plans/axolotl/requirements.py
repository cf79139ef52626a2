"""Plans that Axolotl of July 2026 refuses beside what is set (``utils/schemas/validation.py``,
``docs/nd_parallelism.qmd``), or Accelerate for it (``parallelism_config.py``)."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan

_ATTENTION, _FLASH_ATTENTION, _PACKING = "attn_implementation", "flash_attention", "sample_packing"
_FLASH = ("flash_attention_2", "flash_attention_3", "kernels-community/flash-attn2", "kernels-community/flash-attn3")
_VERSIONS = ("fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version")
_IN_8_BITS = ("paged_adamw_8bit", "adamw_8bit", "adamw_bnb_8bit")


def check(plan: Plan, current: Mapping[str, object], sharded: bool, micro_batch: int | None) -> None:
    """Check a plan beside the settings as they are.

    Args:
        plan: to run.
        current: the settings.
        sharded: whether FSDP shards parameters.
        micro_batch: sequences of a microbatch under the plan, where they are known.

    Raises:
        PlanError: Axolotl refuses it.
    """
    refused = next((said for said, holds in _refusals(plan, current, sharded, micro_batch).items() if holds), None)
    if refused is not None:
        raise PlanError(f"Axolotl refuses it: {refused}")


def _refusals(plan: Plan, current: Mapping[str, object], sharded: bool, micro_batch: int | None) -> dict[str, bool]:
    """Reasons, and whether they hold."""
    context, tensor = plan.degree("seq") > 1, plan.degree("model") > 1
    data, replicas = plan.degree("data"), plan.degree("replica")
    sized = context or tensor or (sharded and replicas > 1)
    return {
        "replicas go with tensor or context parallelism under FSDP alone": (
            not sharded and replicas > 1 and (context or tensor)
        ),
        "FSDP goes with other degrees from fsdp_version: 2": sharded and sized and _version(current) != "2",
        "FSDP has nothing to shard beside tensor parallelism over all devices": (
            sharded and tensor and not context and data == 1
        ),
        f"context parallelism needs {_ATTENTION}: {_FLASH[0]}": context and not _is_flash(current),
        f"context parallelism takes one sequence at once beside {_PACKING}": (
            context and _is_on(current, _PACKING) and (micro_batch or 1) > 1
        ),
        "tensor parallelism does not go with an optimizer of 8 bits": (
            tensor and str(current.get("optimizer")).casefold() in _IN_8_BITS
        ),
    }


def _version(current: Mapping[str, object]) -> str:
    return next((str(current[key]) for key in _VERSIONS if current.get(key) is not None), "1")


def _is_flash(current: Mapping[str, object]) -> bool:
    said = current.get(_ATTENTION)
    return _is_on(current, _FLASH_ATTENTION) if said is None else str(said) in _FLASH


def _is_on(current: Mapping[str, object], key: str) -> bool:
    return str(current.get(key)).casefold() == "true"
