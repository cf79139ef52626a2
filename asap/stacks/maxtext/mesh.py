"""The axes of MaxText's mesh: what each shards, and its degrees read into a plan and written from one.

MaxText names the dimensions of its tensors (``activation_batch``, ``embed``, ``exp``, …), and ``logical_axis_rules``
lays them over the axes of the mesh. The same axis may do another work under other rules: ``expert`` shards the batch
and the experts by default, under others the weights alone or the sequence. An axis shards one dimension of a tensor,
and the batch comes first (flax, ``logical_to_mesh_axes``).
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.axes import AXES, LOGICAL_RULES, MESH_NAMES, Axis, Network
from asap.plans.degrees import InexpressiblePlanError, degree
from asap.plans.plan import Mesh, Plan
from asap.plans.torus import needs_split

RULES, MESH_AXES, SPLIT = LOGICAL_RULES, "mesh_axes", "allow_split_physical_axes"
FILLED_BY_DEFAULT: dict[Network, str] = {"ici": "fsdp", "dcn": "data"}
"""The axis that is -1 in MaxText's base.yml; all others are 1."""
_PER: dict[Network, str] = {"ici": "devices a slice", "dcn": "slices"}
"""What the degrees over each network multiply to."""
_WITHOUT_WORD = ("diloco", "autoregressive", "context_autoregressive")
"""MaxText axes that a plan cannot express."""
_ALL = tuple(name for group in (*MESH_NAMES.values(), _WITHOUT_WORD) for name in group)
_USUAL: dict[str, Axis] = {name: axis for axis, names in MESH_NAMES.items() for name in names}
_KEYS = {"stage": "pipeline", "model": "tensor"}
"""Axes whose key is not called as they are: ``ici_pipeline_parallelism`` is the degree of ``stage``."""
_EXPERTS = ("activation_exp", "expert_only")
_FEATURES = ("activation_heads", "activation_mlp", "activation_embed")
_WEIGHTS = ("embed", "embed_moe", "mlp", "mlp_moe", "heads", "q_heads", "exp")
_NO_WORD, _BOTH = "a plan has no word for this axis", "it shards both the sequence and the experts"
_DEGREE = re.compile(r"(ici|dcn)_\w+_parallelism")

Settings = Mapping[str, object]


@dataclass(frozen=True)
class AxisRoles:
    """What the axes of a mesh do: names by the axis of a plan, and why others have none."""

    names: Mapping[Axis, tuple[str, ...]]
    inexpressible: Mapping[str, str]

    @property
    def known(self) -> tuple[str, ...]:
        """Every axis of the mesh, in MaxText's words."""
        return (*(name for names in self.names.values() for name in names), *self.inexpressible)

    @property
    def usual(self) -> bool:
        """Whether every axis does what it does under MaxText's own rules."""
        named = all(set(names) <= set(MESH_NAMES[axis]) for axis, names in self.names.items())
        return named and set(self.inexpressible) <= set(_WITHOUT_WORD)


def axis_roles(settings: Settings) -> AxisRoles:
    """What each axis does under the rules of a configuration; under MaxText's own where it brings none.

    Raises:
        PlanError: the rules are no list of pairs.
    """
    axes, rules = settings.get(MESH_AXES), settings.get(RULES)
    return _roles(_axes(axes) if axes else _ALL, _pairs(rules)) if axes or rules else _usual_roles()


@cache
def _usual_roles() -> AxisRoles:
    return _roles(_ALL, {})


def _roles(axes: tuple[str, ...], rules: Mapping[str, frozenset[str]]) -> AxisRoles:
    """What axes do under rules, or by their names where there are none."""
    names: dict[Axis, tuple[str, ...]] = {}
    inexpressible: dict[str, str] = {}
    keys = {_KEYS.get(axis, axis): axis for axis in axes}
    for key in sorted(keys, key=lambda name: _ALL.index(name) if name in _ALL else len(_ALL)):
        axis = "stage" if keys[key] == "pipeline" else keys[key]
        found = _NO_WORD if key in _WITHOUT_WORD else _role(axis, rules) if rules else _USUAL.get(key, _NO_WORD)
        if found in MESH_NAMES:
            names[found] = (*names.get(found, ()), key)
        else:
            inexpressible[key] = found
    return AxisRoles({axis: names[axis] for axis in MESH_NAMES if axis in names}, inexpressible)


def _role(axis: str, rules: Mapping[str, frozenset[str]]) -> Axis | str:
    """The axis of a plan that does what this one does, else why there is none."""

    def shards(*dimensions: str) -> bool:
        return any(axis in rules.get(dimension, ()) for dimension in dimensions)

    if shards("layers"):
        return "stage"
    batch, length = shards("activation_batch"), shards("activation_length")
    if shards(*_EXPERTS):
        return _BOTH if length and not batch else "expert"
    if batch:
        return "data" if shards(*_WEIGHTS) else "replica"
    if length:
        return "seq"
    if shards(*_FEATURES):
        return "model"
    return "it shards weights and no activations" if shards(*_WEIGHTS) else "no rule uses it"


def _pairs(rules: object) -> dict[str, frozenset[str]]:
    """Dimension → axes over which some rule lays it; none without rules."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules if isinstance(rules, list | tuple) else ():
        if not isinstance(rule, list | tuple) or len(rule) != 2 or not isinstance(rule[0], str):
            raise PlanError(f"{RULES} must be pairs of a dimension and its axes, not {plain(rule, 40)}")
        axes = [rule[1]] if isinstance(rule[1], str) else rule[1]
        found[rule[0]] = found.get(rule[0], frozenset()) | frozenset(_axes(axes or []))
    if rules and not found:
        raise PlanError(f"{RULES} must be a list of pairs, not {plain(rules, 40)}")
    return found


def _axes(axes: object) -> tuple[str, ...]:
    if isinstance(axes, list | tuple) and all(isinstance(axis, str) for axis in axes):
        return tuple(axes)
    raise PlanError(f"axes of the mesh must be a list of names, not {plain(axes, 40)}")


def axis_key(network: Network, name: str) -> str:
    """``ici, fsdp`` → ``ici_fsdp_parallelism``."""
    return f"{network}_{name}_parallelism"


def keys_of_plan(settings: Settings) -> dict[str, str]:
    """Field of the plan → its setting."""
    found = {"plan.remat": "remat_policy"}
    for network in _PER:
        for axis, said in axis_roles(settings).names.items():
            keys = [axis_key(network, name) for name in said]
            found[f"plan.{network}.{axis}"] = next((key for key in keys if key in settings), keys[0])
    return found


def open_axes(settings: Settings, network: Network) -> tuple[str, ...]:
    """Keys of the axes that are -1, said or by MaxText's default."""
    return tuple(axis_key(network, name) for name, size in degrees_of(settings, network).items() if size == -1)


def said_product(settings: Settings, network: Network) -> int:
    """Of the degrees that are not -1."""
    return math.prod(size for size in degrees_of(settings, network).values() if size != -1)


def degrees_of(settings: Settings, network: Network) -> dict[str, int]:
    """By the name of the axis, -1 for one that takes what is left; raises PlanError where one is no number."""
    return {name: _degree(settings, network, name) for name in axis_roles(settings).known}


def _degree(settings: Settings, network: Network, name: str) -> int:
    said = settings.get(axis_key(network, name), _default(network, name))
    return -1 if str(said) == "-1" else degree(settings, axis_key(network, name))


def _default(network: Network, name: str) -> int:
    return -1 if name == FILLED_BY_DEFAULT[network] else 1


def check_axes(settings: Settings) -> None:
    """Raise PlanError at a degree above 1 (``ici_*_parallelism``) of an axis that the mesh does not have."""
    mesh = axis_roles(settings).known
    for key in filter(_DEGREE.fullmatch, settings):
        network: Network = "ici" if key.startswith("ici") else "dcn"
        name = key[4:].removesuffix("_parallelism")
        if name not in mesh and _degree(settings, network, name) > 1:
            raise PlanError(f"{key}={settings[key]}, and the mesh has no such axis", hint=f"it has {', '.join(mesh)}")


def read_mesh(settings: Settings, network: Network, total: int) -> Mesh:
    """The mesh over one network, filled up to ``total`` devices a slice (or slices).

    Raises:
        PlanError: two -1, a -1 that cannot be filled, or a product that is not ``total``.
        InexpressiblePlanError: an axis does what no axis of a plan does.
    """
    roles, degrees, open_ = axis_roles(settings), degrees_of(settings, network), open_axes(settings, network)
    for name, reason in roles.inexpressible.items():
        if degrees[name] != 1 and total > 1:
            raise InexpressiblePlanError(f"{axis_key(network, name)}={degrees[name]}: {reason}")
    given = math.prod(size for size in degrees.values() if size != -1)
    if len(open_) > 1:
        reason = f"{' and '.join(open_)} are both -1, and only one axis can take what is left"
        raise PlanError(reason, hint="give one a number")
    if open_ and total % given:
        reason = f"{open_[0]} is -1 and cannot be filled: {total} {_PER[network]} are not a multiple of {given}"
        raise PlanError(reason)
    filled = {name: total // given if size == -1 else size for name, size in degrees.items()}
    if (product := math.prod(filled.values())) != total:
        raise PlanError(f"{network}_*_parallelism multiply to {product}, not to the {total} {_PER[network]}")
    return Mesh(**{axis: math.prod(filled[name] for name in names) for axis, names in roles.names.items()})


def write_mesh(mesh: Mesh, network: Network, current: Settings) -> dict[str, str]:
    """Every degree as an override, under the names that ``current`` uses; what it sets besides goes back to 1.

    Raises:
        PlanError: the rules of ``current`` leave no axis for a degree.
    """
    roles = axis_roles(current)
    said = {name: str(current.get(axis_key(network, name), _default(network, name))) for name in (*_ALL, *roles.known)}
    overrides = {}
    for axis in AXES:
        names, size = roles.names.get(axis, ()), getattr(mesh, axis)
        if not names and size > 1:
            reason = f"MaxText's mesh has no axis for {axis}={size} under the rules of this configuration"
            raise PlanError(reason, hint=f"it has {', '.join(roles.known)}")
        if names:
            used = next((name for name in names if said[name] != "1"), names[0])
            overrides[axis_key(network, used)] = str(size)
            overrides |= {axis_key(network, name): "1" for name in names if name != used and said[name] != "1"}
    return overrides | {axis_key(network, name): "1" for name in roles.inexpressible if said[name] != "1"}


_ORDER: tuple[Axis, ...] = ("replica", "stage", "data", "seq", "model", "expert")
"""Of ``mesh_axes`` in MaxText's base.yml."""


def write_layout(plan: Plan, current: Settings, topology: tuple[int, ...] | None) -> dict[str, str]:
    """What has to change of the layout so that MaxText accepts the mesh of a plan on a torus."""
    if not topology or str(current.get(SPLIT)).casefold() == "true":
        return {}
    said, sizes = degrees_of(current, "ici"), list[int]()
    for axis in _ORDER:  # several names of an axis stay where they multiply to its degree
        each = [said.get(name, 1) for name in MESH_NAMES[axis]]
        sizes += each if math.prod(each) == getattr(plan.ici, axis) else [getattr(plan.ici, axis)]
    return {SPLIT: "true"} if needs_split(tuple(sizes), topology) else {}


def plan_axes(settings: Mapping[str, object], plan: Plan) -> dict[str, str]:
    """MaxText's names of the axes above 1 → those of the plan; raises PlanError where two are one axis of it."""
    found: dict[str, str] = {}
    for axis, names in axis_roles(settings).names.items():
        used = [name for name in names if _is_used(settings, name)] or list(names[:1])
        if plan.degree(axis) == 1:
            continue
        if len(used) > 1:
            raise PlanError(f"{' and '.join(used)} are both above 1, and a plan has one axis {axis} for them")
        found[used[0]] = axis
    return {("stage" if name == "pipeline" else name): axis for name, axis in found.items()}


def _is_used(settings: Mapping[str, object], name: str) -> bool:
    return any(str(settings.get(axis_key(network, name), 1)) != "1" for network in ("ici", "dcn"))


_SAID = re.compile(r"\b((?:ici|dcn)_\w+_parallelism)[\"']?\s*[:=]\s*[\"']?(-?\d{1,9})\b", re.ASCII)


def left_open(texts: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Degrees that texts of a configuration say, later ones winning, and settings that leave every degree open; neither
    where none is said."""
    said = {key: value for text in texts for key, value in _SAID.findall(text)}
    free = {axis_key(network, name): "-1" for network, name in FILLED_BY_DEFAULT.items()}
    return said, dict.fromkeys(said, "1") | free if said else {}
