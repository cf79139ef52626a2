"""What of Accelerate no table says: how FSDP shards by version and strategy, and lines for its configuration, for the
command of the program, or for the Trainer's own ``--fsdp``.

With FSDP all processes share the parameters; version 1 can keep them to the GPUs of a machine (``HYBRID_SHARD``),
version 2 has the sizes of ``parallelism_config``. Without it every process has a replica.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError, degree
from asap.plans.plan import Plan, Remat
from asap.stacks.reading import axis_degree, field_of, layout_of
from asap.stacks.registry import spec
from asap.stacks.spec import Spec
from asap.stacks.trainer.arguments import (
    KEEP,
    RECOMPUTE,
    SECTION,
    TRAINER,
    TRAINER_ACCUMULATION,
    TRAINER_MICRO_BATCH,
    arguments_of,
    asked_for_batch,
    fields_of,
    is_run_by_yaml,
    precision,
    weights,
)
from asap.stacks.words import Word
from asap.stacks.writing import yaml_lines

Settings = Mapping[str, object]
TABLE = spec("accelerate")
KIND, PROCESSES, MACHINES = "distributed_type", "num_processes", "num_machines"
FSDP, SIZES = "fsdp_config", "parallelism_config"
OF_PROGRAM = "# arguments of the program that trains:"
"""Between the lines of the configuration and those of the command."""
_MICRO_BATCH, _ACCUMULATION, _RECOMPUTE, _KEEP = (
    f"{SECTION}.{name}" for name in (TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION, RECOMPUTE, KEEP)
)
_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""As Accelerate counts them, from 1."""
UNWRAPPED, _WRAPS = "NO_WRAP", f"{FSDP}.fsdp_auto_wrap_policy"
_NEW = {f"{FSDP}.fsdp_version": "2", _WRAPS: "TRANSFORMER_BASED_WRAP"}
"""What a configuration without FSDP needs for it: without a policy the model is one unit, gathered whole."""
OPTION = "fsdp"
"""The Trainer's own argument, which says a strategy without a configuration of Accelerate."""
WORDS = tuple(name.lower() for name in _STRATEGIES)
_WORD, _ON, _OFF = re.compile(r"\w+", re.ASCII), ("true", "1"), ("", "false", "none", "0")
_OFFLOADS, _STRATEGY, _RECOMPUTES = (
    f"{FSDP}.fsdp_{name}" for name in ("offload_params", "sharding_strategy", "activation_checkpointing")
)


def is_fsdp(settings: Settings) -> bool:
    """Whether FSDP wraps the model."""
    return str(settings.get(KIND)).upper() == "FSDP"


def fsdp_key(settings: Settings, name: str) -> str:
    """The key of a setting of FSDP, which may be written without its prefix."""
    bare = f"{FSDP}.{name}"
    return bare if bare in settings else f"{FSDP}.fsdp_{name}"


def _size_key(settings: Settings, axis: str) -> str:
    """The key of the size of an axis, likewise."""
    word: Word = getattr(TABLE.axes, axis)
    return word.key(settings)


def workload(settings: Settings) -> dict[str, object]:
    """Numerics and kernels that the arguments of the program say."""
    arguments = arguments_of(settings)
    return (
        fields_of(arguments)
        | weights(arguments, settings)
        | {
            "framework": "Accelerate FSDP" if is_fsdp(settings) else "Accelerate DDP",
            "precision": precision(arguments, settings),
            "sync_each_batch": field_of(TRAINER, "sync_each_batch", arguments),
        }
    )


def open_batch(settings: Settings, plan: Plan | None) -> tuple[str, ...]:
    """What to add where the batch is not known."""
    return asked_for_batch({_ACCUMULATION: 1, **settings}, _MICRO_BATCH, _ACCUMULATION) if plan else ()


def counted(settings: Settings, devices: int | None) -> dict[str, object]:
    """The settings that count: of FSDP where it wraps the model, sizes of its version 2, accumulation beside a batch.

    Raises:
        PlanError: there are several devices for what trains on one.
        InexpressiblePlanError: devices are not said, or a strategy shards over a machine whose GPUs are not.
    """
    if devices is None:
        raise InexpressiblePlanError(DEVICES_UNKNOWN)
    if devices > 1 and str(settings.get(KIND)).upper() == "NO":
        raise PlanError(f"{KIND}: NO trains on one device, and the hardware has {devices}")
    sizes = {(key := _size_key(settings, axis)): settings.get(key) for axis in ("replica", "data")}
    unread = {*sizes, *(key for key in settings if key.startswith(f"{FSDP}.") and not is_fsdp(settings))}
    unread |= {_ACCUMULATION} if _MICRO_BATCH not in settings else set()
    said = {key: value for key, value in settings.items() if key not in unread}
    if is_fsdp(settings) and _has_sizes(settings) and any(size is not None for size in sizes.values()):
        said |= {key: 1 if size is None else size for key, size in sizes.items()}
    if layout_of(TABLE, settings) == "hybrid":
        each = axis_degree(TABLE, settings, "model") * axis_degree(TABLE, settings, "seq")
        machine = _processes_each(settings)
        if not machine or (devices // each) % machine:
            raise InexpressiblePlanError(f"HYBRID_SHARD shards over a machine, and {PROCESSES} does not say its GPUs")
        said[_size_key(settings, "data")] = machine
    return said


def refusals(settings: Settings, plan: Plan) -> Iterator[str]:
    """Why it does not run a plan beside its settings."""
    first = is_fsdp(settings) and not _has_sizes(settings)
    if first and plan.degree("replica") > 1 < plan.degree("data") != _processes_each(settings):
        yield "version 1 of FSDP replicates over machines alone, and fsdp_version: 2 has sizes for it"


def written(settings: Settings, plan: Plan, changed: Mapping[str, str], **_: object) -> dict[str, str]:
    """What is written: FSDP as a whole where there is none, a strategy of version 1 instead of sizes, and recomputation
    by one switch, as the Trainer refuses two."""
    found = dict(changed)
    data, replica = plan.degree("data"), plan.degree("replica")
    sharded = data > 1 or plan.degree("seq") > 1
    sizes = {_size_key(settings, axis) for axis in ("replica", "data", "seq", "model")}
    if sharded and not is_fsdp(settings):
        found = {KIND: "FSDP", **_NEW, **{key: value for key, value in found.items() if key != KIND}}
    elif not sharded or not _has_sizes(settings):
        found = {key: value for key, value in found.items() if key not in sizes}
        found |= _first_version(settings, replica, data) if sharded else {}
    if found.get(_RECOMPUTES) == "true" and not is_fsdp({**settings, **found}):
        found[_RECOMPUTE] = found.pop(_RECOMPUTES)
    if plan.remat is Remat.NONE and settings.get(_RECOMPUTE) is None:
        found[_RECOMPUTE] = "false"
    return found


def lines(_: Spec, changed: Mapping[str, str], current: Settings) -> str:
    """Changed settings as YAML for the configuration, and those of the program as options of its command; all in the
    program's arguments where these say how it is sharded.

    Raises:
        PlanError: the Trainer's option has no word for one of them.
    """
    return _option_lines(changed, current) if f"{SECTION}.{OPTION}" in current else lines_to_paste(changed, current)


def lines_to_paste(settings: Settings, current: Settings | None = None) -> str:
    """Settings as YAML for the configuration, and those of the program as options of its command."""
    own = {key: str(value) for key, value in settings.items() if not key.startswith(f"{SECTION}.")}
    options = [
        f"--{key.removeprefix(f'{SECTION}.')} {str(value).lower()}" for key, value in settings.items() if key not in own
    ]
    second = f"{OF_PROGRAM}\n{' '.join(options)}" if options else ""
    return "\n".join(text for text in (yaml_lines(own, current), second) if text)


def fsdp_option(said: object) -> dict[str, Any]:
    """What the words of the Trainer's option say in Accelerate's; without it replicas, and all is sharded where no
    strategy is among them (``--fsdp auto_wrap``); raises PlanError where it has none of its words."""
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said or "").casefold()
    words = [] if text in _OFF else [WORDS[0]] if text in _ON else _WORD.findall(text.casefold())
    known = (*WORDS, "offload", "auto_wrap")
    if unknown := next((word for word in words if word not in known), None):
        raise PlanError(f"{OPTION} has no option {plain(unknown, 40)}", hint=f"known are {', '.join(known)}")
    if not words:
        return {KIND: "MULTI_GPU"}
    named = next((word for word in words if word in WORDS), WORDS[0])
    found: dict[str, Any] = {KIND: "FSDP", _STRATEGY: named.upper(), _OFFLOADS: "offload" in words}
    return found if "auto_wrap" in words or text in _ON else {**found, _WRAPS: UNWRAPPED}


def _option_lines(changed: Mapping[str, str], current: Settings) -> str:
    options = {key: value for key, value in changed.items() if key.startswith(f"{SECTION}.")}
    if _RECOMPUTES in changed:
        options[_RECOMPUTE] = changed[_RECOMPUTES]
    unsaid = changed.keys() - options.keys() - {KIND, _STRATEGY, _OFFLOADS, _RECOMPUTES, *_NEW}
    if unsaid:
        raise PlanError(f"--{OPTION} of the Trainer has no word for {', '.join(sorted(unsaid))}")
    if changed.keys() & {KIND, _STRATEGY, _OFFLOADS}:
        after = {**current, **changed}
        offloads = "offload " if str(after.get(_OFFLOADS)).casefold() == "true" else ""
        options[f"{SECTION}.{OPTION}"] = (
            f'"{str(after.get(_STRATEGY, _STRATEGIES[0])).lower()} {offloads}auto_wrap"' if is_fsdp(after) else '""'
        )
    if _KEEP in current and _RECOMPUTE in options:
        options[_KEEP] = str(options.pop(_RECOMPUTE).casefold() != "true").lower()
    if is_run_by_yaml(current):
        return yaml_lines({key.removeprefix(f"{SECTION}."): value for key, value in options.items()})
    return lines_to_paste(options)


def _has_sizes(settings: Settings) -> bool:
    """Whether FSDP is of version 2."""
    return str(settings.get(fsdp_key(settings, "version"))) == "2"


def _processes_each(settings: Settings) -> int:
    """Processes of a machine; 0 where they are not said."""
    return degree(settings, PROCESSES) // degree(settings, MACHINES) if PROCESSES in settings else 0


def _first_version(settings: Settings, replica: int, data: int) -> dict[str, str]:
    """The strategy of version 1, where the configuration says it: over all processes, or over those of a machine."""
    hybrid = layout_of(TABLE, settings) == "hybrid"
    kept = hybrid and data == _processes_each(settings) if replica == 1 else hybrid
    if kept or (replica == 1 and layout_of(TABLE, settings) == "data"):
        return {}
    keys = (fsdp_key(settings, "sharding_strategy"), fsdp_key(settings, "reshard_after_forward"))
    return {next((key for key in keys if key in settings), keys[0]): "HYBRID_SHARD" if replica > 1 else "FULL_SHARD"}
