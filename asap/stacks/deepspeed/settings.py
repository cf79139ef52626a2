"""What of DeepSpeed no table says: the stage of ZeRO and what hangs on it, numbers that it leaves to the launcher
(``auto``), and what it refuses.

Tensor parallelism is ``tensor_parallel.autotp_size``, context parallelism ``sequence_parallel_size``
(DeepSpeed-Ulysses), which the model's code has to support.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import degree
from asap.plans.plan import Offload, Remat
from asap.stacks.trainer.arguments import (
    AUTO,
    argument_key,
    batch_arguments,
    in_words_of_axolotl,
    is_run_by_trainer,
    recomputation,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Degree = float | NDArray[np.float64]

Settings = Mapping[str, object]
STAGE = "zero_optimization.stage"
MICRO_BATCH, ACCUMULATION = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
BATCH = "train_batch_size"
TENSOR = "tensor_parallel.autotp_size"
SEQUENCE = "sequence_parallel_size"
GROUP = "zero_optimization.mics_shard_size"
SECONDARY = "zero_optimization.zero_hpz_partition_size"
OFFLOAD: dict[Offload, str] = {
    "optimizer": "zero_optimization.offload_optimizer.device",
    "parameters": "zero_optimization.offload_param.device",
}
"""Settings that offload; ``none`` and nothing do not."""
_OFFLOADED_FROM: dict[Offload, int] = {"optimizer": 0, "parameters": 3}
"""The least stage of ZeRO at which they count: ``offload_param`` is ignored below 3 (DeepSpeed Configuration JSON)."""
_DEVICES = ("cpu", "nvme", "none", AUTO)


def layout(settings: Settings) -> Literal["data", "replica"]:
    """What processes do with parameters."""
    return "data" if zero_stage(settings) == 3 else "replica"


def zero_stage(settings: Settings) -> int:
    """The stage of ZeRO, 0 by default.

    Raises:
        PlanError: it is not 0 to 3.
    """
    text = str(settings.get(STAGE, 0))
    if text not in ("0", "1", "2", "3"):
        raise PlanError(f"{STAGE} must be 0 to 3, not {text[:20]!r}")
    return int(text)


def offloaded(settings: Settings, stage: int) -> tuple[Offload, ...]:
    """What the configuration offloads at a stage of ZeRO.

    Raises:
        PlanError: DeepSpeed has no such device.
    """
    for key in OFFLOAD.values():
        if (device := str(settings.get(key) or "none")) not in _DEVICES:
            raise PlanError(f"{key} must be cpu, nvme or none, not {plain(device, 40)}")
    return tuple(
        what
        for what, key in OFFLOAD.items()
        if stage >= _OFFLOADED_FROM[what] and str(settings.get(key) or "none") not in ("none", AUTO)
    )


def prepared(settings: Settings, devices: int | None = None) -> dict[str, object]:
    """The settings without what is left to the launcher or has no effect at their stage; and with one microbatch
    where neither batch nor accumulation is said.

    Raises:
        PlanError: processes do not divide into the groups of MiCS.
    """
    stage, moved = zero_stage(settings), offloaded(settings, zero_stage(settings))
    unread = {key for what, key in OFFLOAD.items() if what not in moved} | {GROUP}
    said = {key: value for key, value in settings.items() if value != AUTO and key not in unread}
    if stage == 3 and str(settings.get(GROUP, -1)) != "-1":
        sequence = degree(settings, SEQUENCE)
        shards, rest = divmod(degree(settings, GROUP), sequence)
        if rest or ((devices or 0) // (sequence * degree(settings, TENSOR))) % shards:
            raise PlanError(f"{devices} processes do not divide into groups of {GROUP}")
        said[GROUP] = shards
    if MICRO_BATCH in said and not {BATCH, ACCUMULATION} & said.keys() and settings.get(ACCUMULATION) != AUTO:
        said[ACCUMULATION] = 1
    return said


def refusals(settings: Settings, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Why it does not run a plan beside its settings."""
    data, replica, tensor = wanted["data"], wanted["replica"], wanted["model"]
    if wanted["seq"] > 1 and SEQUENCE not in settings:
        yield "its configuration has no seq degree: that is the model's code"
    if data > 1 and tensor > 1:
        yield "it has no ZeRO stage 3 with tensor_parallel.autotp_size"
    if data > 1 < replica and GROUP not in settings and is_run_by_trainer(settings):
        reason = f"Hugging Face's libraries load weights under deepspeed.zero.Init, which {GROUP} refuses"
        yield f"{reason}; data parallelism with one axis goes: data alone (stage 3) or replica alone"
    stage = 3 if shards_parameters(data, replica, tensor, zero_stage(settings)) else 2
    if "parameters" in wanted["offload"] and stage < 3:
        yield f"it offloads parameters under ZeRO stage 3 only, not {min(stage, zero_stage(settings))}"


def written(settings: Settings, wanted: Mapping[str, Any], changed: Mapping[str, str]) -> dict[str, str]:
    """What is written: the stage with its groups, and as arguments what the configuration leaves to the launcher."""
    found, present = dict(changed), zero_stage(settings)
    data, replica = wanted["data"], wanted["replica"]
    stage = 3 if shards_parameters(data, replica, wanted["model"], present) else min(present, 2)
    found |= {STAGE: str(stage), GROUP: str(data * wanted["seq"] if stage == 3 and replica > 1 else -1)}
    for what, key in OFFLOAD.items():
        if stage < _OFFLOADED_FROM[what]:
            found.pop(key, None)
    of_trainer, each, parts = is_run_by_trainer(settings), wanted["each"], wanted["microbatches"]
    found = {key: value for key, value in found.items() if not key.endswith("gradient_checkpointing")}
    if of_trainer:
        batch = {key for key in (MICRO_BATCH, ACCUMULATION, BATCH) if settings.get(key) in (None, AUTO)}
        found = {key: value for key, value in found.items() if key not in batch}
        found |= {key: str(value) for key, value in batch_arguments(settings, each, parts).items() if each}
    remat = Remat(wanted["remat"]) if wanted["remat"] else None
    found |= {key: str(value).lower() for key, value in recomputation(remat, settings).items()}
    usual = {STAGE: "0", GROUP: "-1", ACCUMULATION: "1", argument_key(settings, ACCUMULATION): "1"}
    left = {key for key, value in found.items() if settings.get(key) is None and usual.get(key) == value}
    left |= {key for key in found if settings.get(key) == AUTO} | ({GROUP} if stage < 3 else set())
    kept = {key: value for key, value in found.items() if key not in left}
    return {in_words_of_axolotl(settings, key): value for key, value in kept.items()}


def shards_parameters(data: "Degree", replica: "Degree", tensor: "Degree", present: int) -> "bool | NDArray[np.bool_]":
    """Whether DeepSpeed runs a mesh under stage 3: it has a ``data`` axis, or nothing to replicate, and runs so now.

    Args:
        data, replica, tensor: degrees of one mesh, or arrays of the degrees of many.
        present: the stage now.
    """
    return (data > 1) | ((replica * tensor == 1) & (present == 3))
