"""What each axis of MaxText's mesh shards, from ``mesh_axes`` and ``logical_axis_rules``.

MaxText names the dimensions of its tensors (``activation_batch``, ``embed``, ``exp``, …), and ``logical_axis_rules``
lays them over the axes of the mesh. The same axis may do another work under other rules: ``expert`` shards the batch
and the experts by default, under others the weights alone or the sequence. An axis shards one dimension of a tensor,
and the batch comes first (flax, ``logical_to_mesh_axes``).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.axes import MAXTEXT as NAMES
from asap.plans.axes import Axis

RULES, MESH_AXES = "logical_axis_rules", "mesh_axes"

WITHOUT_WORD = ("diloco", "autoregressive", "context_autoregressive")
"""MaxText axes that a plan cannot express."""

ALL_NAMES = tuple(name for group in (*NAMES.values(), WITHOUT_WORD) for name in group)

_KEYS = {"stage": "pipeline", "model": "tensor"}
"""Axes whose key is not called as they are: ``ici_pipeline_parallelism`` is the degree of ``stage``."""

_EXPERTS = ("activation_exp", "expert_only")
_FEATURES = ("activation_heads", "activation_mlp", "activation_embed")
_WEIGHTS = ("embed", "embed_moe", "mlp", "mlp_moe", "heads", "q_heads", "exp")


@dataclass(frozen=True)
class AxisRoles:
    """What the axes of a mesh do: names by the axis of a plan, and why others have none."""

    names: Mapping[Axis, tuple[str, ...]] = field(default_factory=lambda: NAMES)
    inexpressible: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> tuple[str, ...]:
        """Every axis of the mesh, in MaxText's words."""
        return (*(name for names in self.names.values() for name in names), *self.inexpressible)

    @property
    def usual(self) -> bool:
        """Whether every axis does what it does under MaxText's own rules."""
        named = all(set(names) <= set(NAMES[axis]) for axis, names in self.names.items())
        return named and set(self.inexpressible) <= set(WITHOUT_WORD)


_NO_WORD = "a plan has no word for this axis"
_BOTH = "it shards both the sequence and the experts"
DEFAULT_ROLES = AxisRoles(inexpressible=dict.fromkeys(WITHOUT_WORD, _NO_WORD))


def _kept(known: Collection[str]) -> dict[Axis, tuple[str, ...]]:
    """MaxText's own names, without the axes that a mesh does not have."""
    names: dict[Axis, tuple[str, ...]] = {
        axis: tuple(name for name in group if name in known) for axis, group in NAMES.items()
    }
    return {axis: group for axis, group in names.items() if group}


MODEL_ROLES: dict[str, AxisRoles] = {
    "deepseek3-671b-2dfsdp": AxisRoles(
        {"replica": ("data", "context"), "data": ("fsdp", "fsdp_transpose", "expert"), "stage": ("pipeline",)},
        {"diloco": _NO_WORD},
    ),
    "deepseek3-671b-batchsplit": AxisRoles({"replica": ("data", "context"), "data": ("fsdp",), "expert": ("expert",)}),
}
"""Models of MaxText whose own file brings rules (configs/models, commit e591f30c)."""


def axis_roles(settings: Mapping[str, object]) -> AxisRoles:
    """What each axis does under the rules of a configuration; under MaxText's own where it brings none.

    Raises:
        PlanError: the rules are no list of pairs.
    """
    rules, axes = settings.get(RULES), settings.get(MESH_AXES)
    if rules:
        every = ("stage" if name == "pipeline" else name for name in ALL_NAMES)
        return _from_rules(_pairs(rules), _axes(axes) if axes else tuple(every))
    if found := MODEL_ROLES.get(str(settings.get("model_name"))):
        return found
    if not axes:
        return DEFAULT_ROLES
    known = {_key_name(name) for name in _axes(axes)}
    return AxisRoles(_kept(known), {name: _NO_WORD for name in WITHOUT_WORD if name in known})


def _from_rules(rules: Mapping[str, frozenset[str]], axes: Iterable[str]) -> AxisRoles:
    names: dict[Axis, tuple[str, ...]] = {}
    inexpressible: dict[str, str] = {}
    for axis in axes:
        found = _NO_WORD if axis in WITHOUT_WORD else _role(axis, rules)
        if found in NAMES:
            names[found] = (*names.get(found, ()), _key_name(axis))
        else:
            inexpressible[_key_name(axis)] = found
    order = {name: place for place, name in enumerate(ALL_NAMES)}
    return AxisRoles(
        {axis: tuple(sorted(group, key=lambda name: order.get(name, len(order)))) for axis, group in names.items()},
        inexpressible,
    )


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
    """Dimension → axes over which some rule lays it."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules if isinstance(rules, list | tuple) else ():
        if not isinstance(rule, list | tuple) or len(rule) != 2 or not isinstance(rule[0], str):
            raise PlanError(f"{RULES} must be pairs of a dimension and its axes, not {plain(rule, 40)}")
        axes = [rule[1]] if isinstance(rule[1], str) else rule[1]
        found[rule[0]] = found.get(rule[0], frozenset()) | frozenset(_axes(axes or []))
    if not found:
        raise PlanError(f"{RULES} must be a list of pairs, not {plain(rules, 40)}")
    return found


def _axes(axes: object) -> tuple[str, ...]:
    if isinstance(axes, list | tuple) and all(isinstance(axis, str) for axis in axes):
        return tuple(axes)
    raise PlanError(f"axes of the mesh must be a list of names, not {plain(axes, 40)}")


def _key_name(axis: str) -> str:
    return _KEYS.get(axis, axis)
