"""The plan and the batch that a stack makes of its settings, by its table."""

import math
from collections.abc import Mapping
from typing import Any, cast

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError, degree, expert_axis, groups_of
from asap.plans.plan import Mesh, Plan, Remat
from asap.plans.remat import Offload
from asap.stacks.registry import hook
from asap.stacks.spec import Layout, Spec
from asap.stacks.spec import Offload as OffloadWords
from asap.stacks.words import Meaning, Word

Settings = Mapping[str, object]
INNER = ("seq", "model", "stage")
"""Axes whose devices see the same sequences."""


def from_settings(
    spec: Spec, settings: Settings, devices: int | None = None, slices: int = 1, layers: int | None = None
) -> Plan:
    """The plan that a stack makes of its settings on so many devices.

    Args:
        spec: the table of the stack.
        settings: under its names.
        devices: of the job; ``None`` where only the degrees say them.
        slices: of TPUs.
        layers: of the model, where they are known.

    Raises:
        PlanError: the degrees do not divide the devices, or a word has no meaning.
        InexpressiblePlanError: a plan cannot say the layout, or the settings leave it open.
    """
    said = spec.add_defaults(_counted(spec, settings, devices))
    if plan_of := hook(spec, "plan_of"):
        return plan_of(said, devices, slices, layers)
    inner = {axis: axis_degree(spec, said, axis) for axis in INNER}
    experts = axis_degree(spec, said, "expert")
    groups = _groups(spec, said, devices, inner, 1 if spec.axes.folded else experts)
    of_slices = _key(spec, said, "slices")
    over = slices if of_slices is None or is_rest(spec, said, of_slices) else degree(said, of_slices)
    replica, data = _copies_and_shards(spec, said, groups // over)
    if experts > 1 and spec.axes.folded:
        split = axis_degree(spec, said, "expert_tensor")
        experts = expert_axis(experts, split, inner["model"], inner["seq"], groups)
        replica, data = (replica, data // experts) if not data % experts else (replica // experts, data)
    shared, rest = divmod(slices, over)
    if rest or data % shared:
        raise PlanError(f"{slices} slices are not a multiple of {_key(spec, said, 'slices')}={over}")
    repeats_of, remat_of = hook(spec, "repeats_of"), hook(spec, "remat_of")
    repeats = repeats_of(said, inner["stage"], layers) if repeats_of else 1
    found = Plan(
        ici=Mesh(replica=replica, data=data // shared, expert=experts, **inner),
        dcn=Mesh(replica=over, data=shared),
        microbatches=_microbatches(spec, said, replica * over * data * experts, inner["stage"]),
        pipeline_repeats=repeats,
        remat=remat_of(said, layers, inner["stage"] * repeats) if remat_of else _recomputation(spec, said),
        offload=offloaded(spec, said),
    )
    if devices is not None and not spec.axes.whole and found.devices != devices:
        raise PlanError(f"degrees of {found.devices} devices, where there are {devices}")
    return found


def global_batch_of(
    spec: Spec, settings: Settings, plan: Plan | None, sequence: int | None = None, devices: int | None = None
) -> int | None:
    """Sequences in a step; ``None`` where settings, plan and devices do not say it. Raises like
    :func:`from_settings`."""
    counted = _counted(spec, settings, plan.devices) if plan else settings
    said = spec.add_defaults(counted)
    if batch_of := hook(spec, "batch_of"):
        return batch_of(said, plan.devices if plan else devices) if plan or devices else None
    whole = _count(spec, said, spec.batch.whole)
    if whole is not None:
        return _sequences(spec, whole, sequence)
    micro = _count(spec, said, _micro(spec, plan.degree("stage") if plan else 1))
    if plan is None or plan.microbatches is None or micro is None:
        return None
    each = _sequences(spec, micro, sequence)
    return each and each * plan.microbatches * plan.batch_shards


def _counted(spec: Spec, settings: Settings, devices: int | None) -> Settings:
    """The settings that count for a plan, where the stack's own code leaves some out or adds to them."""
    counted = hook(spec, "counted")
    return counted(settings, devices) if counted else settings


def meaning(word: Word | None, settings: Settings) -> Meaning | None:
    """What a word of the settings means; raises PlanError where it has no meaning."""
    try:
        return word.meaning(settings) if word else None
    except ValueError as error:
        key = word.key(settings) if word else ""
        raise PlanError(f"{key} must be {error}, not {plain(str(settings.get(key)), 40)}") from error


def field_of(spec: Spec, field: str, settings: Mapping[str, object]) -> Any:
    """What the first word of a field of the workload says that is said; raises PlanError where it has no meaning."""
    return _decided(spec, field, settings)[0]


def key_of(spec: Spec, field: str, settings: Mapping[str, object]) -> str | None:
    """The setting that decides a field of the workload; raises likewise."""
    return _decided(spec, field, settings)[1]


def _decided(spec: Spec, field: str, settings: Mapping[str, object]) -> tuple[Any, str | None]:
    for word in spec.workload.get(field, ()):
        if (found := meaning(word, settings)) is not None:
            return found, word.key(settings)
    return None, None


def is_on(settings: Settings, key: str) -> bool:
    """Whether a switch is on."""
    return str(settings.get(key)).casefold() in ("true", "1", "yes")


def moves(offload: OffloadWords, settings: Settings) -> bool:
    """Whether all switches of something that can wait in host memory are on; some say how, as ``disk``."""
    return all(meaning(word, settings) not in (None, offload.off, "none", "no") for word in offload.keys)


def layout_of(spec: Spec, settings: Settings) -> Layout:
    """How parameters lie over the devices that see different sequences."""
    if layout := hook(spec, "layout"):
        return layout(settings)
    full, words = spec.add_defaults(settings), (*spec.axes.lays_out, spec.axes.strategy)
    said = next((found for word in words if (found := meaning(word, full)) is not None), spec.axes.layout)
    return cast(Layout, said)


def axis_degree(spec: Spec, settings: Settings, axis: str) -> int:
    """The degree of an axis; 1 where the stack has none, or where its word stands for none."""
    key = _key(spec, settings, axis)
    return 1 if key is None or is_rest(spec, settings, key) else degree(settings, key)


def is_rest(spec: Spec, settings: Settings, key: str) -> bool:
    """Whether a degree is left to what the others leave."""
    return settings.get(key) is None or str(settings[key]).casefold() in spec.axes.rest


def _key(spec: Spec, settings: Settings, axis: str) -> str | None:
    word: Word | None = getattr(spec.axes, axis)
    return word.key(settings) if word else None


def _groups(spec: Spec, said: Settings, devices: int | None, inner: Mapping[str, int], experts: int) -> int:
    """Devices that see different sequences, without those that experts lie over."""
    keys = {axis: key for axis in (*INNER, "expert") if (key := _key(spec, said, axis))}
    degrees = {keys[axis]: size for axis, size in inner.items() if axis in keys}
    degrees |= {keys["expert"]: experts} if experts > 1 else {}
    outer = [key for axis in ("replica", "data") if (key := _key(spec, said, axis))]
    if spec.axes.whole:
        return math.prod(degree(said, key) for key in outer)
    if devices is None and spec.axes.data and not any(is_rest(spec, said, key) for key in outer):
        return math.prod(degree(said, key) for key in outer)
    if devices is None:
        raise InexpressiblePlanError(DEVICES_UNKNOWN)
    return groups_of(devices, degrees)


def _copies_and_shards(spec: Spec, said: Settings, groups: int) -> tuple[int, int]:
    """Copies of the parameters, and devices that share one."""
    layout = layout_of(spec, said)
    copies, shards = (_key(spec, said, axis) for axis in ("replica", "data"))
    sizes = {key: degree(said, key) for key in (copies, shards) if key and not is_rest(spec, said, key)}
    if layout == "replica":
        return groups, 1
    if layout == "hybrid" and not sizes:
        return _over_nodes(spec, said, groups)
    if shards in sizes and spec.axes.data_of_all:
        found = sizes.get(copies or "", 1), sizes[shards] // sizes.get(copies or "", 1)
    elif shards in sizes:
        found = sizes.get(copies or "", groups // sizes[shards]), sizes[shards]
    else:
        found = sizes.get(copies or "", 1), groups // sizes.get(copies or "", 1)
    if found[0] * found[1] != groups:
        hint = f"change a size on the command line, such as {shards or copies}=…"
        words = " x ".join(f"{key}={size}" for key, size in sizes.items())
        raise PlanError(f"{words}, and the other degrees leave {groups} devices", hint=hint)
    return found


def _over_nodes(spec: Spec, said: Settings, groups: int) -> tuple[int, int]:
    node = spec.axes.node.key(said) if spec.axes.node else None
    if node is None or said.get(node) is None:
        ask = f": add {_key(spec, said, 'data')}=N" if spec.axes.data else ""
        raise InexpressiblePlanError(f"a hybrid strategy shards over the GPUs of a node, whose number is not said{ask}")
    each = min(degree(said, node), groups)
    if groups % each:
        raise PlanError(f"{groups} devices are not a multiple of {node}={each}")
    return groups // each, each


def _micro(spec: Spec, stages: int) -> Word:
    return spec.batch.in_pipeline if spec.batch.in_pipeline and stages > 1 else spec.batch.micro


def _count(spec: Spec, said: Settings, word: Word | None) -> int | None:
    """A size of the batch; ``None`` where nothing says it."""
    key = word.key(said) if word else None
    silent = (*spec.batch.all_at_once, *(word.nothing if word else ()), "none")
    if key is None or str(said.get(key)).casefold() in silent:
        return None
    return degree(said, key)


def _microbatches(spec: Spec, said: Settings, groups: int, stages: int) -> int | None:
    batch = spec.batch
    word = _micro(spec, stages)
    whole, micro, parts = (_count(spec, said, one) for one in (batch.whole, word, batch.accumulation))
    if str(said.get(word.key(said))).casefold() in batch.all_at_once:
        return 1
    if batch.whole is None and batch.accumulation is None:
        return 1
    if whole is None or micro is None:
        return parts
    found, rest = divmod(whole, micro * groups)
    if rest or not found or parts not in (None, found):
        key, factor = batch.whole.key(said) if batch.whole else "", f" x {parts} accumulated" if parts else ""
        way = "--batch N" if batch.asked else f"{key}=N"
        hint = f"on these devices it takes another batch or other degrees: say {way}, or arguments as key=value"
        reason = f"{key} {whole} is not a multiple of {word.key(said)} {micro} x {groups} data-parallel groups{factor}"
        raise PlanError(reason, hint=hint)
    return found


def _sequences(spec: Spec, size: int, sequence: int | None) -> int | None:
    if spec.batch.unit == "sequences":
        return size
    whole, rest = divmod(size, sequence) if sequence else (0, 1)
    return whole if whole and not rest else None


def _recomputation(spec: Spec, said: Settings) -> Remat | None:
    """The policy of the first switch that is on; ``None`` where its word is one that no plan says."""
    found = [str(meaning(word, said) or "none") for word in spec.recompute]
    named = next((one for one in found if one != "none"), "none")
    return Remat(named) if named in tuple(Remat) else None


def offloaded(spec: Spec, said: Settings) -> tuple[Offload, ...]:
    """What waits in host memory."""
    moved = [one.what for one in spec.offload if moves(one, said)]
    return tuple(dict.fromkeys(what for each in moved for what in each))
