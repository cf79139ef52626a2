"""A plan as Accelerate's configuration, both ways (huggingface/accelerate, ``utils/dataclasses.py``,
``parallelism_config.py``, ``commands/launch.py``).

With FSDP all processes share the parameters (``data``); version 1 can keep them to the GPUs of a machine
(``HYBRID_SHARD``), version 2 has the sizes of ``parallelism_config``. Without it every process has a replica. Settings
go by dotted key, arguments of the program that trains below ``TrainingArguments``.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.axes import AXES, Axis
from asap.plans.degrees import InexpressiblePlanError, degree, groups_of, sequences_of_a_microbatch
from asap.plans.plan import Mesh, Offload, Plan, Remat
from asap.stacks.deepspeed.trainer import RECOMPUTE, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH
from asap.stacks.writing import yaml_lines

KIND, PROCESSES, MACHINES = "distributed_type", "num_processes", "num_machines"
FSDP, SIZES = "fsdp_config", "parallelism_config"
SHARD, REPLICATE, TENSOR, CONTEXT = "dp_shard_size", "dp_replicate_size", "tp_size", "cp_size"
_AXES: Mapping[str, Axis] = {SHARD: "data", REPLICATE: "replica", TENSOR: "model", CONTEXT: "seq"}
OF_PROGRAM = "# arguments of the program that trains:"
"""Between the lines of the configuration and those of the command."""
_MICRO_BATCH, _ACCUMULATION, _RECOMPUTE = (
    f"{SECTION}.{name}" for name in (TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION, RECOMPUTE)
)
_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""As Accelerate counts them, from 1."""
_OFFLOADED: tuple[Offload, ...] = ("optimizer", "parameters")
_NEW = {"fsdp_version": "2", "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
"""What a configuration without FSDP needs for it: without a policy the model is one unit, gathered whole."""


def is_fsdp(settings: Mapping[str, object]) -> bool:
    """Whether FSDP wraps the model."""
    return str(settings.get(KIND)).upper() == "FSDP"


def version(settings: Mapping[str, object]) -> str:
    """Of FSDP, 1 by default."""
    return str(settings.get(fsdp_key(settings, "version")) or "1")


def strategy(settings: Mapping[str, object]) -> str:
    """Of sharding: that of version 1 also by number or as ``fsdp_reshard_after_forward``; version 2 has one.

    Raises:
        PlanError: there is no such strategy.
    """
    if version(settings) == "2":
        return _STRATEGIES[0]
    keys = (fsdp_key(settings, "sharding_strategy"), fsdp_key(settings, "reshard_after_forward"))
    said = next((str(settings[key]).upper() for key in keys if settings.get(key) is not None), _STRATEGIES[0])
    found = _STRATEGIES[int(said) - 1] if said in ("1", "2", "3", "4", "5") else said
    if found not in _STRATEGIES:
        raise PlanError(f"Accelerate has no {keys[0]} {plain(said, 40)}", hint=", ".join(_STRATEGIES))
    return found


def shards(settings: Mapping[str, object]) -> bool:
    """Whether processes share parameters."""
    return is_fsdp(settings) and strategy(settings) != "NO_SHARD"


def keeps_gathered(settings: Mapping[str, object]) -> bool:
    """Whether weights that are gathered for the forward pass stay until the backward pass."""
    reshards = str(settings.get(fsdp_key(settings, "reshard_after_forward"))).casefold()
    of_second = version(settings) == "2" and reshards == "false"
    return is_fsdp(settings) and (of_second or strategy(settings) in ("SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2"))


def fsdp_key(settings: Mapping[str, object], name: str) -> str:
    """The key of a setting of FSDP, which may be written without its prefix."""
    bare = f"{FSDP}.{name}"
    return bare if bare in settings else f"{FSDP}.fsdp_{name}"


def size_key(settings: Mapping[str, object], name: str) -> str:
    """The key of a size of ``parallelism_config``, likewise."""
    bare = f"{SIZES}.{name}"
    return bare if bare in settings else f"{SIZES}.{SIZES}_{name}"


def from_settings(settings: Mapping[str, object], devices: int) -> Plan:
    """The plan that Accelerate makes of its settings on so many devices.

    Raises:
        PlanError: the sizes do not multiply to the devices, or a setting has no such value.
    """
    tensor, context = degree(settings, size_key(settings, TENSOR)), degree(settings, size_key(settings, CONTEXT))
    groups = groups_of(devices, {TENSOR: tensor, CONTEXT: context})
    if devices > 1 and str(settings.get(KIND)).upper() == "NO":
        raise PlanError(f"{KIND}: NO trains on one device, and the hardware has {devices}")
    replicas = _replicas(settings, groups)
    fsdp = is_fsdp(settings)
    return Plan(
        ici=Mesh(replica=replicas, data=groups // replicas, seq=context, model=tensor),
        microbatches=degree(settings, _ACCUMULATION) if _MICRO_BATCH in settings else None,
        remat=remat_of(settings),
        offload=_OFFLOADED if fsdp and _is_on(settings, fsdp_key(settings, "offload_params")) else (),
    )


def remat_of(settings: Mapping[str, object]) -> Remat | None:
    """What is recomputed; ``None`` where only the program's defaults tell: transformers' is off, TRL's is on."""
    if any(_is_on(settings, key) for key in _recomputing(settings)):
        return Remat.FULL
    return None if settings.get(_RECOMPUTE) is None else Remat.NONE


def global_batch_of(settings: Mapping[str, object], plan: Plan) -> int | None:
    """Sequences in a step; ``None`` where the program's arguments are not known."""
    if _MICRO_BATCH not in settings:
        return None
    return degree(settings, _MICRO_BATCH) * degree(settings, _ACCUMULATION) * plan.batch_shards


def to_settings(plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None) -> dict[str, str]:
    """Settings that have to change for Accelerate to run a plan.

    Raises:
        PlanError: Accelerate cannot express the plan.
    """
    _check(plan, current)
    mesh = _mesh(plan, current)
    wanted = mesh | _recompute(plan, {**current, **mesh}) | _batch(plan, global_batch)
    if is_fsdp(current) or plan.offload:
        wanted[fsdp_key(current, "offload_params")] = str(bool(plan.offload)).lower()
    return {key: value for key, value in wanted.items() if not _same(current, key, value)}


def lines_to_paste(settings: Mapping[str, object]) -> str:
    """Settings as YAML for the configuration, and those of the program as options of its command."""
    own = {key: str(value) for key, value in settings.items() if not key.startswith(f"{SECTION}.")}
    options = [
        f"--{key.removeprefix(f'{SECTION}.')} {str(value).lower()}" for key, value in settings.items() if key not in own
    ]
    second = f"{OF_PROGRAM}\n{' '.join(options)}" if options else ""
    return "\n".join(text for text in (yaml_lines(own), second) if text)


def _replicas(settings: Mapping[str, object], groups: int) -> int:
    """Copies of the parameters among the groups of devices that see different sequences."""
    if not shards(settings):
        return groups
    if strategy(settings).startswith("HYBRID"):
        machine = _of_machine(settings)
        if not machine or groups % machine:
            raise InexpressiblePlanError(f"HYBRID_SHARD shards over a machine, and {PROCESSES} does not say its GPUs")
        return groups // machine
    sizes = {name: settings.get(size_key(settings, name)) for name in (REPLICATE, SHARD)}
    if version(settings) != "2" or all(value is None for value in sizes.values()):
        return 1
    replicas, sharded = (degree(settings, size_key(settings, name)) for name in sizes)
    if replicas * sharded != groups:
        reason = f"{REPLICATE}={replicas} x {SHARD}={sharded}, and the other sizes leave {groups} devices"
        raise PlanError(reason, hint=f"change a size, such as {size_key(settings, SHARD)}=…")
    return replicas


def _check(plan: Plan, current: Mapping[str, object]) -> None:
    inexpressible = [axis for axis in AXES if axis not in _AXES.values() and plan.degree(axis) > 1]
    if inexpressible:
        raise PlanError(f"Accelerate has no {', '.join(inexpressible)} degree")
    for name in (TENSOR, CONTEXT):
        if plan.degree(_AXES[name]) > 1 and size_key(current, name) not in current:
            raise PlanError(f"{name} of Accelerate needs a program that loads its model for it")
    if plan.offload and set(plan.offload) != set(_OFFLOADED):
        raise PlanError("FSDP offloads parameters and optimizer together")
    if plan.offload and plan.degree("data") == 1:
        raise PlanError("only parameters that FSDP shards are offloaded")


def _mesh(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    data, replica = plan.degree("data"), plan.degree("replica")
    if plan.devices == 1:
        return {}
    if data == 1 and plan.devices == replica:
        return {} if not shards(current) else {KIND: "MULTI_GPU"}
    if data == 1 < replica:
        raise PlanError("Accelerate replicates no model that is split otherwise", hint="a data degree of two or more")
    if data == 1 == plan.degree("seq"):
        raise PlanError("FSDP has nothing to shard beside tensors split over all devices")
    if not is_fsdp(current):
        return {KIND: "FSDP"} | {f"{FSDP}.{key}": value for key, value in _NEW.items()} | _sizes(plan, current)
    return _sizes(plan, current) if version(current) == "2" else _of_first(plan, current)


def _sizes(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """Sizes for version 2, which shards over all processes where none is above one; else they multiply to them."""
    sizes = {size_key(current, name): str(plan.degree(axis)) for name, axis in _AXES.items()}
    said = [key for key in sizes if key in current]
    alone = all(plan.degree(axis) == 1 for axis in ("replica", "model", "seq"))
    wanted = {key: sizes[key] for key in said} if alone else sizes
    return {key: value for key, value in wanted.items() if key in said or value != "1"}


def _of_first(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """The strategy of version 1: over all processes, or over those of a machine."""
    hybrid, of_machine = strategy(current).startswith("HYBRID"), plan.degree("data") == _of_machine(current)
    if plan.degree("replica") == 1 and not (hybrid and of_machine):
        return {} if not hybrid and shards(current) else _strategy_of(current, "FULL_SHARD")
    if not of_machine:
        raise PlanError("version 1 of FSDP replicates over machines alone", hint="fsdp_version: 2 has sizes for it")
    return {} if hybrid else _strategy_of(current, "HYBRID_SHARD")


def _of_machine(settings: Mapping[str, object]) -> int:
    """Processes of a machine; 0 where they are not said."""
    return degree(settings, PROCESSES) // degree(settings, MACHINES) if PROCESSES in settings else 0


def _strategy_of(current: Mapping[str, object], name: str) -> dict[str, str]:
    """The strategy where the configuration says it."""
    keys = (fsdp_key(current, "sharding_strategy"), fsdp_key(current, "reshard_after_forward"))
    return {next((key for key in keys if key in current), keys[0]): name}


def _recomputing(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Switches of which each makes layers compute again what they did not keep."""
    return (*((fsdp_key(settings, "activation_checkpointing"),) if is_fsdp(settings) else ()), _RECOMPUTE)


def _recompute(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    """Recomputation by the switches that are on, else by the first: the Trainer refuses both at once."""
    if plan.remat is None:
        return {}
    if plan.remat not in (Remat.NONE, Remat.FULL):
        raise PlanError(f"Hugging Face's libraries have no recomputation like remat={plan.remat.value}")
    on = [key for key in _recomputing(current) if _is_on(current, key)]
    if plan.remat is Remat.FULL:
        return {} if on else {_recomputing(current)[0]: "true"}
    return dict.fromkeys(on or [_RECOMPUTE], "false")


def _batch(plan: Plan, global_batch: int | None) -> dict[str, str]:
    if plan.microbatches is None or global_batch is None:
        return {}
    each = sequences_of_a_microbatch(plan, plan.microbatches, global_batch)
    return {_MICRO_BATCH: str(each), _ACCUMULATION: str(plan.microbatches)}


def _is_on(settings: Mapping[str, object], key: str) -> bool:
    return str(settings.get(key)).casefold() == "true"


def _same(current: Mapping[str, object], key: str, value: str) -> bool:
    said = current.get(key)
    if said is None:
        return value == {_ACCUMULATION: "1", fsdp_key(current, "offload_params"): "false"}.get(key)
    return str(said).casefold() == value.casefold()
