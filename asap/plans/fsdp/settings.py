"""A plan as settings of a program under FSDP, both ways: data parallelism shards parameters (``data``), unless its
strategy keeps them whole (``replica``) or within a node."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.degrees import InexpressiblePlanError, degree, groups_of, sequences_of_a_microbatch
from asap.plans.fsdp.words import words_of
from asap.plans.plan import Mesh, Offload, Plan, Remat

_FULL, _WHOLE = "FULL_SHARD", "NO_SHARD"
_GATHERED = ("SHARD_GRAD_OP", "_HYBRID_SHARD_ZERO2")
_HYBRID = ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")
_OFFLOADED: tuple[Offload, ...] = ("optimizer", "parameters")


def from_settings(settings: Mapping[str, object], devices: int) -> Plan:
    """The plan that a program makes of its settings on so many devices.

    Raises:
        PlanError: the degrees do not divide the devices, or there is no such strategy.
    """
    words, said = words_of(settings), _with_defaults(settings)
    context, tensor = (degree(said, key) if key else 1 for key in (words.context, words.tensor))
    groups = groups_of(devices, {words.context or "": context, words.tensor or " ": tensor})
    shards = _shards(said, groups)
    return Plan(
        ici=Mesh(replica=groups // shards, data=shards, seq=context, model=tensor),
        microbatches=_microbatches(said, groups),
        remat=Remat.FULL if str(said.get(words.recompute)).casefold() == words.recomputing[0] else Remat.NONE,
        offload=_OFFLOADED if words.offload and all(_is_on(said, key) for key in words.offload) else (),
    )


def shards(settings: Mapping[str, object]) -> bool:
    """Whether devices share parameters."""
    return _strategy(_with_defaults(settings)) != _WHOLE


def keeps_gathered(settings: Mapping[str, object]) -> bool:
    """Whether weights that are gathered for the forward pass stay until the backward pass."""
    return _strategy(_with_defaults(settings)) in _GATHERED


def global_batch_of(settings: Mapping[str, object], plan: Plan | None = None) -> int | None:
    """Sequences in a step; ``None`` where it is not said, or counted in microbatches of a plan that is not known."""
    said, words = _with_defaults(settings), words_of(settings)
    if words.batch is not None:
        return degree(said, words.batch) if said.get(words.batch) is not None else None
    if plan is None or plan.microbatches is None or said.get(words.micro_batch) is None:
        return None
    return degree(said, words.micro_batch) * plan.microbatches * plan.batch_shards


def to_settings(plan: Plan, current: Mapping[str, object], *, global_batch: int | None = None) -> dict[str, str]:
    """Settings that have to change for the program to run a plan.

    Raises:
        PlanError: it cannot express the plan.
    """
    words, said = words_of(current), _with_defaults(current)
    _check(plan, current)
    wanted: dict[str, str] = dict.fromkeys(words.offload, str(bool(plan.offload)).lower())
    degrees = {words.context: "seq", words.tensor: "model", words.replicas: "replica"}
    wanted |= {key: str(plan.degree(axis)) for key, axis in degrees.items() if key}  # pyright: ignore[reportArgumentType]
    if words.strategy and plan.degree("data") * plan.degree("replica") > 1:
        strategy = _strategy_of(plan, said)
        wanted[words.strategy] = strategy.lower() if str(said.get(words.strategy)).islower() else strategy
    if plan.remat is not None:
        wanted[words.recompute] = words.recomputing[plan.remat is Remat.NONE]
    if plan.microbatches is not None and global_batch is not None:
        wanted[words.micro_batch] = str(sequences_of_a_microbatch(plan, plan.microbatches, global_batch))
        wanted |= {words.batch: str(global_batch)} if words.batch else {}
        wanted |= {words.accumulation: str(plan.microbatches)} if words.accumulation else {}
        if plan.microbatches > 1 and not words.batch and not words.accumulation:
            raise PlanError(f"{words.name} has no microbatches")
        if plan.microbatches > 1:
            wanted |= {key: "false" for key in words.at_once if _is_on(said, key)}
    changed = {key: value for key, value in wanted.items() if str(said.get(key)).casefold() != value.casefold()}
    if own := sorted(words.fixed & changed.keys()):
        raise PlanError(f"{words.name} sets {', '.join(own)} itself")
    return changed


def line_to_paste(settings: Mapping[str, str], current: Mapping[str, object]) -> str:
    """The settings on one line, as the program's command takes them; a switch that is off comes last."""
    words = words_of(current)
    how = words.written
    if words.pythonic:
        settings = {key: value.title() if value in ("true", "false") else value for key, value in settings.items()}
    if how != "switches":
        form = {"options": "--{} {}", "equals": "--{}={}"}.get(how, "{}={}")
        return " ".join(form.format(key, value) for key, value in settings.items())
    written = {key: f"--{key.replace('_', '-')}" for key in settings}
    off = [written[key] for key, value in settings.items() if value == "false"]
    said = [written[key] if value == "true" else f"{written[key]} {value}" for key, value in settings.items()]
    said = [word for word in said if word.removesuffix(" false") not in off]
    return " ".join([*said, *(["# without", *off] if off else [])])


def _check(plan: Plan, current: Mapping[str, object]) -> None:
    words = words_of(current)
    said = {"seq": words.context, "model": words.tensor, "replica": words.strategy or words.replicas}
    axes = ("model", "expert", "stage", "seq", "replica")
    missing = [axis for axis in axes if plan.degree(axis) > 1 and not said.get(axis)]  # pyright: ignore[reportArgumentType]
    if missing:
        raise PlanError(f"{words.name} has no degree for {' and '.join(missing)}")
    if plan.degree("model") > 1 and words.tensor_by and not _is_said(current, words.tensor_by):
        raise PlanError(f"{words.name} splits matrices by {words.tensor_by}, which is not said")
    if plan.offload and not words.offload:
        raise PlanError(f"{words.name} offloads nothing")
    if plan.offload and set(plan.offload) != set(_OFFLOADED):
        raise PlanError(f"{words.name} offloads parameters and optimizer together, and nothing else")
    if plan.remat not in (None, Remat.NONE, Remat.FULL):
        raise PlanError(f"{words.name} has no recomputation like remat={plan.remat.value}", hint="full or none")


def _with_defaults(settings: Mapping[str, object]) -> Mapping[str, object]:
    return {**words_of(settings).defaults, **{key: value for key, value in settings.items() if value is not None}}


def _is_on(settings: Mapping[str, object], key: str) -> bool:
    return str(settings.get(key)).casefold() == "true"


def _is_said(settings: Mapping[str, object], key: str) -> bool:
    """Whether a setting, or one of its section, is said and not off."""
    said = (value for name, value in settings.items() if name == key or name.startswith(f"{key}."))
    return any(str(value).casefold() not in ("", "false", "none") for value in said)


def _strategy(settings: Mapping[str, object]) -> str:
    key = words_of(settings).strategy
    said = str(settings.get(key, _FULL)).upper() if key else _FULL
    if said not in (_FULL, _WHOLE, *_GATHERED, *_HYBRID):
        raise PlanError(f"FSDP has no {key} {plain(said, 40)}")
    return said


def _shards(settings: Mapping[str, object], groups: int) -> int:
    strategy, node, replicas = _strategy(settings), words_of(settings).node, words_of(settings).replicas
    if strategy == _WHOLE:
        return 1
    if replicas:
        return groups_of(groups, {replicas: degree(settings, replicas)})
    if strategy not in _HYBRID:
        return groups
    if node is None or settings.get(node) is None:
        raise InexpressiblePlanError("a hybrid strategy shards over the GPUs of a node, whose number is not said")
    each = min(degree(settings, node), groups)
    if groups % each:
        raise PlanError(f"{groups} devices are not a multiple of {node}={each}")
    return each


def _strategy_of(plan: Plan, settings: Mapping[str, object]) -> str:
    """The strategy that lays parameters out as a plan does; the present one where it does so already.

    Raises:
        PlanError: there is none.
    """
    data, replica = plan.degree("data"), plan.degree("replica")
    present, node = _strategy(settings), words_of(settings).node
    if data == 1:
        return _WHOLE
    if replica == 1:
        within = present in _HYBRID and str(settings.get(node or "")) == str(data)
        return present if within or present not in (_WHOLE, *_HYBRID) else _FULL
    if node is None or str(settings.get(node)) != str(data):
        raise PlanError(f"a hybrid strategy shards over the GPUs of a node, not over {data}")
    return present if present in _HYBRID else _HYBRID[0]


def _microbatches(settings: Mapping[str, object], groups: int) -> int | None:
    words = words_of(settings)
    if not words.batch and not words.accumulation:
        return 1
    if words.accumulation and not words.batch:
        return degree(settings, words.accumulation) if settings.get(words.accumulation) is not None else None
    if not words.batch or settings.get(words.micro_batch) is None or settings.get(words.batch) is None:
        return None
    each, batch = degree(settings, words.micro_batch), degree(settings, words.batch)
    if batch % (each * groups):
        parts = f"{words.micro_batch} {each} x {groups} data-parallel groups"
        raise PlanError(f"{words.batch} {batch} is not a multiple of {parts}")
    return batch // (each * groups)
