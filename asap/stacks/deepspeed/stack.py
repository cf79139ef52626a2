"""What of DeepSpeed no table says: the stage of ZeRO, what is left to the launcher, what it refuses; and its lines."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError, degree
from asap.plans.plan import Offload, Plan
from asap.stacks.accelerate.stack import KIND
from asap.stacks.accelerate.stack import lines_to_paste as yaml_and_options
from asap.stacks.reading import is_on
from asap.stacks.registry import spec
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings, nested
from asap.stacks.trainer.arguments import (
    AUTO,
    OF_YAML,
    SECTION,
    TRAINER_ACCUMULATION,
    TRAINER_MICRO_BATCH,
    argument_key,
    arguments_of,
    asked_for_batch,
    fields_of,
    in_words_of_axolotl,
    is_run_by_trainer,
    is_run_by_yaml,
    loaded_in_bf16,
    recomputation,
)
from asap.stacks.writing import yaml_lines

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
_OVERLAPS = "zero_optimization.overlap_comm"
_BUCKET, _BUCKET_SIZE = "zero_optimization.reduce_bucket_size", 500_000_000
_HALF, _BUCKETS = 2, 4.5
"""Bytes of an element, and buckets where ZeRO-1 and 2 overlap them with the backward pass
(https://huggingface.co/docs/transformers/v4.15.0/main_classes/deepspeed)."""


def zero_stage(settings: Settings) -> int:
    """The stage of ZeRO, 0 by default.

    Raises:
        PlanError: it is not 0 to 3.
    """
    text = str(settings.get(STAGE, 0))
    if text not in ("0", "1", "2", "3"):
        raise PlanError(f"{STAGE} must be 0 to 3, not {text[:20]!r}")
    return int(text)


def workload(settings: Settings) -> dict[str, object]:
    """Precision, optimizer and buffers; what is left ``auto`` is the program's choice, whose arguments say the rest."""
    stage, arguments = zero_stage(settings), arguments_of(settings)
    said = {kind: str(settings.get(f"{kind}.enabled", "false")).casefold() for kind in ("bf16", "fp16")}
    computed = next((kind for kind, value in said.items() if value == "true"), None)
    computed = computed or (None if AUTO in said.values() else "fp32")
    if is_on(arguments, "fp8") or (computed == "fp32" and loaded_in_bf16(arguments)):
        computed = "fp8" if is_on(arguments, "fp8") else "bf16"
    found = fields_of(arguments)
    of_trainer = found["optimizer"] if TRAINER_MICRO_BATCH in arguments else None
    overlaps, own = stage < 3 and is_on(settings, _OVERLAPS), StackSettings(settings, "")
    bucket = own.whole(_BUCKET, _BUCKET_SIZE) if stage and own.get(_BUCKET) != AUTO else None
    return found | {
        "precision": computed,
        "optimizer": settings.get("optimizer.type", of_trainer),
        "zero_stage": stage,
        "secondary_shards": own.count(SECONDARY) if own.get(SECONDARY, 1) not in (1, AUTO) else None,
        "reduction_buffers": bucket and _HALF * bucket * (_BUCKETS if overlaps else 1),
    }


def open_batch(settings: Settings, plan: Plan | None) -> tuple[str, ...]:
    """What to add where the batch is not known."""
    return asked_for_batch(settings, MICRO_BATCH, ACCUMULATION) if plan else ()


def counted(settings: Settings, devices: int | None) -> dict[str, object]:
    """The settings without what is left to the launcher or has no effect at their stage; and with one microbatch
    where neither batch nor accumulation is said.

    Raises:
        PlanError: processes do not divide into the groups of MiCS.
        InexpressiblePlanError: devices are not said.
    """
    stage = zero_stage(settings)
    if devices is None:
        raise InexpressiblePlanError(DEVICES_UNKNOWN)
    said = {key: value for key, value in settings.items() if value != AUTO and key != GROUP}
    if stage == 3 and str(settings.get(GROUP, -1)) != "-1":
        sequence = degree(settings, SEQUENCE)
        shards, rest = divmod(degree(settings, GROUP), sequence)
        if rest or (devices // (sequence * degree(settings, TENSOR))) % shards:
            raise PlanError(f"{devices} processes do not divide into groups of {GROUP}")
        said[GROUP] = shards
    if MICRO_BATCH in said and not {BATCH, ACCUMULATION} & said.keys() and settings.get(ACCUMULATION) != AUTO:
        said[ACCUMULATION] = 1
    return said


def refusals(settings: Settings, plan: Plan) -> Iterator[str]:
    """Why it does not run a plan beside its settings."""
    data, replica, tensor = (plan.degree(axis) for axis in ("data", "replica", "model"))
    if data > 1 < replica and GROUP not in settings and is_run_by_trainer(settings):
        reason = f"Hugging Face's libraries load weights under deepspeed.zero.Init, which {GROUP} refuses"
        yield f"{reason}; data parallelism with one axis goes: data alone (stage 3) or replica alone"
    stage = 3 if shards_parameters(data, replica, tensor, zero_stage(settings)) else 2
    if "parameters" in plan.offload and stage < 3:
        yield f"it offloads parameters under ZeRO stage 3 only, not {min(stage, zero_stage(settings))}"


def written(
    settings: Settings, plan: Plan, changed: Mapping[str, str], each: int | None, **_: object
) -> dict[str, str]:
    """What is written: the stage with its groups, and as arguments what the configuration leaves to the launcher."""
    found, present = dict(changed), zero_stage(settings)
    data, replica = plan.degree("data"), plan.degree("replica")
    stage = 3 if shards_parameters(data, replica, plan.degree("model"), present) else min(present, 2)
    found |= {STAGE: str(stage), GROUP: str(data * plan.degree("seq") if stage == 3 and replica > 1 else -1)}
    for what, key in OFFLOAD.items():
        if stage < _OFFLOADED_FROM[what]:
            found.pop(key, None)
    found = {key: value for key, value in found.items() if not key.endswith("gradient_checkpointing")}
    if is_run_by_trainer(settings):
        batch = {key for key in (MICRO_BATCH, ACCUMULATION, BATCH) if settings.get(key) in (None, AUTO)}
        found = {key: value for key, value in found.items() if key not in batch}
        sizes = {TRAINER_MICRO_BATCH: each, TRAINER_ACCUMULATION: plan.microbatches} if each else {}
        found |= {argument_key(settings, name): str(size) for name, size in sizes.items()}
    found |= {key: str(value).lower() for key, value in recomputation(plan.remat, settings).items()}
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


OF_JSON = "# in the DeepSpeed configuration that it names:"
"""Between the arguments and the JSON."""
PYTHON = f"{SECTION}("
"""How arguments in Python begin."""
NAMED = f"{SECTION}.deepspeed"
"""Among a run's settings: a configuration of the launcher's own, named instead of a file (``zero3`` of ms-swift)."""
PRESETS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8"))


def lines(_: Spec, changed: Mapping[str, str], current: Mapping[str, object]) -> str:
    """Changed settings as JSON, with the arguments of the program that fill it, or in the launcher's words.

    Raises:
        PlanError: the launcher has none for one of them.
    """
    typed = {key: _typed(value) for key, value in changed.items()}
    return _lines_of_accelerate(typed, current) if is_said_by_accelerate(current) else lines_to_paste(typed, current)


def _typed(value: str) -> object:
    switches = {"true": True, "false": False}
    return switches.get(value, int(value) if value.lstrip("-").isdecimal() else value)


def lines_to_paste(settings: Mapping[str, object], current: Mapping[str, object]) -> str:
    """Settings to change, by dotted key, as text.

    Args:
        settings: what changes.
        current: the settings of the run.
    """
    if is_run_by_yaml(current):
        arguments = yaml_lines({key: json.dumps(value) for key, value in settings.items() if key in OF_YAML})
        return _both(arguments, OF_JSON, {key: value for key, value in settings.items() if key not in OF_YAML})
    of_json = {key: value for key, value in settings.items() if not key.startswith(f"{SECTION}.")}
    said = {key.removeprefix(f"{SECTION}."): value for key, value in settings.items() if key not in of_json}
    heading = OF_JSON
    if of_json and NAMED in current:
        own = (key for key in current if key.partition(".")[0] not in (SECTION, "asap"))
        whole = {key: current[key] for key in own} | of_json
        if name := _own_name(of_json, whole):
            said, of_json = {"deepspeed": name, **said}, {}
        else:
            heading, of_json = "# as a DeepSpeed configuration, FILE.json, for --deepspeed FILE.json:", whole
    if not said and heading == OF_JSON:
        return json.dumps(nested(of_json))
    options = " ".join(f"--{key} {str(value).lower()}" for key, value in said.items())
    in_python = f"{PYTHON}{', '.join(f'{key}={value!r}' for key, value in said.items())})"
    by_options = any(key.startswith(f"{SECTION}.") for key in current)
    return _both(options if by_options else in_python, heading, of_json)


def _both(arguments: str, heading: str, of_json: Mapping[str, object]) -> str:
    second = f"{heading}\n{json.dumps(nested(of_json))}" if of_json else ""
    return "\n".join(text for text in (arguments, second) if text)


def _own_name(changed: Mapping[str, object], whole: Mapping[str, object]) -> str | None:
    """The name of ms-swift's own configuration that says what changes; ``None`` where none does."""
    deciding = (STAGE, *OFFLOAD.values())
    if changed.keys() - {*deciding} or str(whole.get(TENSOR, 1)) != "1":
        return None
    said = {key: str(whole[key]) for key in deciding if str(whole.get(key) or "none") != "none"}
    own = ((name, {key: str(value) for key, value in one.items()}) for name, one in PRESETS["."].items())
    return next((name for name, one in own if one == said), None)


CONFIG = "deepspeed_config"
IN_FILE = f"{CONFIG}.deepspeed_config_file"
OF_ACCELERATE = {own: theirs for theirs, own in spec("deepspeed").renamed.items()}
"""DeepSpeed's settings and what Accelerate calls them."""


def is_said_by_accelerate(settings: Mapping[str, object] | None) -> bool:
    """Whether settings of DeepSpeed stand in Accelerate's configuration."""
    return settings is not None and str(settings.get(KIND)).upper() == "DEEPSPEED"


def _lines_of_accelerate(changed: Mapping[str, object], current: Mapping[str, object]) -> str:
    """Changed settings of DeepSpeed in Accelerate's words.

    Raises:
        PlanError: it has none for one of them.
    """
    unsaid = [key for key in changed if key not in OF_ACCELERATE and not key.startswith(f"{SECTION}.")]
    if unsaid:
        raise PlanError(
            f"Accelerate says {plain(', '.join(unsaid), 80)} in a DeepSpeed JSON alone", hint=f"{IN_FILE}: FILE.json"
        )
    named = {OF_ACCELERATE.get(key, key): value for key, value in changed.items()}
    return yaml_and_options(named, {OF_ACCELERATE.get(key, key): value for key, value in current.items()})
