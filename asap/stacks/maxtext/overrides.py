"""A plan as MaxText's ``key=value`` overrides, both ways."""

import shlex
from collections.abc import Callable, Collection, Mapping

from asap.core.errors import PlanError
from asap.plans.plan import OF_WORKLOAD, Plan
from asap.stacks.maxtext import rematerialisation
from asap.stacks.maxtext.axes import (
    SPLIT,
    check_axes,
    read_mesh,
    write_layout,
    write_mesh,
)
from asap.stacks.maxtext.pipeline import read_microbatches, read_repeats, write_batch, write_pipeline
from asap.stacks.maxtext.rematerialisation import as_written, check_recomputation, read_offload, read_remat, write_remat
from asap.stacks.registry import spec
from asap.stacks.rules import facts_of, needed, refusals
from asap.stacks.writing import beside_mesh

_TABLE = spec("maxtext")
OVERRIDE_MODEL = "override_model_config"

_WRITTEN = frozenset(
    [
        "remat_policy", *rematerialisation.TENSORS, "per_device_batch_size", "gradient_accumulation_steps",
        "num_pipeline_microbatches", "num_pipeline_repeats", "num_layers_per_pipeline_stage", SPLIT,
    ]
)  # fmt: skip


def from_overrides(
    settings: Mapping[str, object], devices_per_slice: int | None = None, slices: int = 1, layers: int | None = None
) -> Plan:
    """The plan that MaxText settings describe; keys that do not concern it are ignored.

    Args:
        settings: keys and values as in a configuration or on the command line. An axis that is absent has
            MaxText's default; an absent ``remat_policy`` or ``gradient_accumulation_steps`` is unknown.
        devices_per_slice: JAX devices of one slice, to fill up -1 and to check the product.
        slices: slices of the job.
        layers: decoder layers that are pipelined, for ``num_pipeline_repeats=-1``.

    Raises:
        PlanError: an unknown axis, two -1 on one side, a product that is not the device count, an axis that a
            plan has no word for, or a value that is not a number.
    """
    check_axes(settings)
    ici = read_mesh(settings, "ici", devices_per_slice)
    dcn = read_mesh(settings, "dcn", slices)
    stages = ici.stage * dcn.stage
    return Plan(
        ici=ici,
        dcn=dcn,
        microbatches=read_microbatches(settings, stages),
        pipeline_repeats=read_repeats(settings, stages, layers),
        remat=read_remat(settings),
        offload=read_offload(settings),
    )


def to_overrides(
    plan: Plan,
    current: Mapping[str, object] | None = None,
    *,
    global_batch: int | None = None,
    layers: int | None = None,
    topology: tuple[int, ...] | None = None,
    of_model: Collection[str] = (),
) -> dict[str, str]:
    """Overrides that make MaxText run a plan.

    On top of a configuration they change what the plan changes and nothing else: no key can be left out, and what
    the configuration sets for the same effect (names of axes, a policy tensor by tensor) stays. Without one, each
    degree is said, except the DCN side where the plan does not use it.

    Args:
        plan: what to run.
        current: the settings of the configuration that the overrides go on top of.
        global_batch: sequences in a step; gives ``per_device_batch_size`` where the plan sets microbatches.
        layers: decoder layers that are pipelined; gives ``num_layers_per_pipeline_stage``.
        topology: of a slice of TPUs; gives ``allow_split_physical_axes``, without which MaxText refuses a mesh whose
            axes do not take whole axes of the torus.
        of_model: keys that the file of the model sets, which MaxText changes with ``override_model_config`` only.

    Raises:
        PlanError: MaxText cannot express the plan.
    """
    overrides = _written(plan, current or {}, global_batch, layers)
    layout = write_layout(plan, current or {}, topology)
    if current is not None:
        kept = {key: value for key, value in current.items() if key not in layout}
        overrides = _needed(overrides, kept, plan, global_batch, layers)
    beside = beside_mesh(_TABLE, plan, current or {})
    overrides |= layout | {key: value for key, value in beside.items() if str((current or {}).get(key, "")) != value}
    overrides |= needed(_TABLE.rules, facts_of(plan), current or {})
    if overrides.keys() & set(of_model) and str((current or {}).get(OVERRIDE_MODEL)).lower() != "true":
        overrides[OVERRIDE_MODEL] = "true"
    return overrides


def is_written(key: str) -> bool:
    """Whether a plan may set a key of MaxText."""
    return key.endswith(("_parallelism", "_host_offload")) or key in _WRITTEN


def check_expressible(
    plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None, layers: int | None = None
) -> None:
    """Raise a PlanError where MaxText cannot express a plan on top of a configuration."""
    check_recomputation(plan, current)
    _written(plan, current, global_batch, layers)


def _written(
    plan: Plan, settings: Mapping[str, object], global_batch: int | None, layers: int | None
) -> dict[str, str]:
    """Every override of a plan; raises PlanError where MaxText refuses it beside the settings."""
    if (reason := next(refusals(_TABLE.rules, facts_of(plan), settings), None)) is not None:
        raise PlanError(reason)
    return (
        _write_meshes(plan, settings)
        | write_batch(plan, global_batch)
        | write_pipeline(plan, layers)
        | write_remat(plan, settings)
    )


def paste_line(overrides: Mapping[str, object]) -> str:
    """Overrides as arguments of the launcher: ``ici_fsdp_parallelism=16 …``."""
    return " ".join(shlex.quote(f"{key}={value}") for key, value in overrides.items())


def _write_meshes(plan: Plan, current: Mapping[str, object]) -> dict[str, str]:
    overrides = write_mesh(plan.ici, "ici", current)
    if plan.dcn.devices > 1 or any(key.startswith("dcn_") for key in current):
        overrides |= write_mesh(plan.dcn, "dcn", current)
    return overrides


def _needed(
    overrides: dict[str, str], current: Mapping[str, object], plan: Plan, global_batch: int | None, layers: int | None
) -> dict[str, str]:
    """Overrides without those that the plan, read back, does not miss."""
    settings = {**_TABLE.defaults, **current}
    plan = plan.model_copy(update={"remat": as_written(plan.remat, current)})
    devices, slices = plan.ici.devices, plan.dcn.devices

    def runs(kept: Mapping[str, str]) -> bool:
        changed = {**settings, **kept}
        try:
            read = from_overrides(changed, devices, slices, layers)
        except PlanError:
            return False
        return _same(read, plan) and (global_batch is None or _batch(changed, plan.devices) == global_batch)

    if not runs(overrides):
        return overrides
    overrides = {key: value for key, value in overrides.items() if str(current.get(key)) != value}
    while (key := _superfluous(overrides, runs)) is not None:
        overrides = {other: value for other, value in overrides.items() if other != key}
    return overrides


def _superfluous(overrides: Mapping[str, str], runs: Callable[[Mapping[str, str]], bool]) -> str | None:
    for left_out in overrides:
        kept = {key: value for key, value in overrides.items() if key != left_out}
        if left_out not in rematerialisation.TENSORS and runs(kept):
            return left_out
    return None


def _same(read: Plan, plan: Plan) -> bool:
    """Whether MaxText runs the plan; what the plan leaves unknown may be anything."""
    unknown = {field: getattr(plan, field) for field in ("microbatches", "remat") if getattr(plan, field) is None}
    unknown |= {field: getattr(plan, field) for field in OF_WORKLOAD}
    read = read.model_copy(update=unknown)
    return read.model_copy(update={"offload": tuple(sorted(read.offload))}) == plan.model_copy(
        update={"offload": tuple(sorted(plan.offload))}
    )


def _batch(settings: Mapping[str, object], devices: int) -> int | None:
    try:
        per_device = float(str(settings["per_device_batch_size"]))
        return int(devices * per_device) * int(str(settings["gradient_accumulation_steps"]))
    except (ValueError, OverflowError):
        return None
