"""Logical axes of the reference training step, and the mesh axes over which they are sharded.

The rules are MaxText's (``logical_axis_rules`` in configs/base.yml): parameters are sharded over the FSDP axis and,
along the same dimension, over the sequence and expert axes; the residual stream is sharded over the tensor axis.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from asap.core.errors import PlanError
from asap.mapping.coverage import LAYER, Coverage, Target, matches, value_of
from asap.mapping.language.format import format_decision
from asap.mapping.language.program import Decision, Mesh, Order, Program, Sharding, TensorSetting
from asap.mapping.plan_program import beyond_plan, plan_of, policy_of
from asap.mapping.sharding import shardings
from asap.models import Workload
from asap.plans import AXES
from asap.plans.remat import Policy

if TYPE_CHECKING:
    from jax.sharding import Mesh as DeviceMesh
    from jax.sharding import NamedSharding, PartitionSpec


Said = Mapping[str, tuple[str, ...]]
"""Mesh axes that a mapping program says, by what it calls a dimension."""

NOTHING_SAID: Said = {}

BATCH_AXES = ("replica", "data", "expert")
RULES: Mapping[str, tuple[str, ...]] = {
    "batch": BATCH_AXES,
    "batch_of_experts": ("replica", "data"),
    "sequence": ("seq",),
    "residual": ("model",),
    "embed": ("data", "seq", "expert"),
    "expert_embed": ("data", "seq"),
    "heads": ("model",),
    "hidden": ("model",),
    "vocabulary": ("model",),
    "experts": ("expert",),
    "layers": ("stage",),
    "stages": ("stage",),
}

DIMENSIONS: Mapping[str, str] = {"expert_embed": "embed", "residual": "embed"}
"""Dimensions with a rule of their own → what a mapping program calls them; the others keep their names."""


@dataclass(frozen=True)
class LogicalMesh:
    """A mesh with all axes of :data:`AXES`, and the sharding of arrays with named dimensions."""

    mesh: "DeviceMesh"

    def degree(self, axis: str) -> int:
        """Devices along a mesh axis."""
        return int(self.mesh.shape[axis])

    @property
    def on_tpu(self) -> bool:
        """Whether the mesh is made of TPUs, real or described."""
        return self.mesh.devices.flat[0].platform == "tpu"

    def spec(self, shape: tuple[int, ...], names: tuple[str | None, ...], said: Said = NOTHING_SAID) -> "PartitionSpec":
        """Mesh axes of each dimension: those that a mapping program says, else those of the rule.

        An axis of a rule that does not divide its dimension, or that the program uses for another, is left out.
        """
        from jax.sharding import PartitionSpec

        taken = {axis for axes in said.values() for axis in axes}

        def axes(length: int, name: str | None) -> tuple[str, ...]:
            called = DIMENSIONS.get(name, name) if name else ""
            if called in said:
                return tuple(axis for axis in said[called] if self.degree(axis) > 1)
            return self.axes(length, name, taken)

        return PartitionSpec(*(axes(length, name) or None for length, name in zip(shape, names, strict=True)))

    def sharding(
        self, shape: tuple[int, ...], names: tuple[str | None, ...], said: Said = NOTHING_SAID
    ) -> "NamedSharding":
        """The sharding of an array whose dimensions have these names."""
        from jax.sharding import NamedSharding

        return NamedSharding(self.mesh, self.spec(shape, names, said))

    def constrain(self, array: Any, *names: str | None, said: Said = NOTHING_SAID) -> Any:
        """The array, sharded by the names of its dimensions and by what a mapping program says of them."""
        import jax

        return jax.lax.with_sharding_constraint(array, self.sharding(array.shape, names, said))

    def axes(self, length: int, name: str | None, taken: Collection[str] = ()) -> tuple[str, ...]:
        """Mesh axes that the rule of a dimension splits it over."""
        chosen: tuple[str, ...] = ()
        for axis in RULES[name] if name else ():
            if axis in taken:
                continue
            if self.degree(axis) > 1 and length % math.prod(self.degree(a) for a in (*chosen, axis)) == 0:
                chosen = (*chosen, axis)
        return chosen


def logical_mesh(mesh: "DeviceMesh") -> LogicalMesh:
    """The logical mesh on a mesh that names all axes."""
    if tuple(mesh.axis_names) != AXES:
        raise ValueError(f"the mesh needs the axes {', '.join(AXES)}")
    return LogicalMesh(mesh)


Span = tuple[int, int] | None
"""First and last layer; ``None`` outside of layers."""

KEPT_TYPES = {"fp32": "float32", "bf16": "bfloat16"}
"""Types in which the reference step keeps parameters → their names in JAX."""

Splits = Literal["shard", "constrain"]
Sets = Literal["place", "layout", "dtype", "remat"]


@dataclass(frozen=True)
class ProgramLines:
    """Shardings and settings by layer, and the layers at which they change; without fields those of no program."""

    axes: Mapping[tuple[Splits, str], tuple[tuple[Span, Said], ...]] = field(default_factory=dict)
    settings: Mapping[tuple[Sets, str], tuple[tuple[Span, str], ...]] = field(default_factory=dict)
    cuts: tuple[int, ...] = ()

    @classmethod
    def of(cls, target: Target, program: Program) -> "ProgramLines":
        """The lines of a checked program."""
        axes: dict[tuple[Splits, str], list[tuple[Span, Said]]] = {}
        for keyword in get_args(Splits):
            for found in shardings(target, program, keyword):
                said = {split.dimension.name: split.axes for split in found.splits if split.line}
                axes.setdefault((keyword, found.place.tensor.name), []).append((found.place.layers, said))
        settings: dict[tuple[Sets, str], list[tuple[Span, str]]] = {}
        for keyword in get_args(Sets):
            coverage = Coverage(target, keyword, program)
            for bit, line in coverage.holding().items():
                place, (value,) = coverage.places[bit], value_of(line)
                settings.setdefault((keyword, place.tensor.name), []).append((place.layers, value))
        ranges = [d.layers for d in program.decisions if isinstance(d, Sharding | TensorSetting) and d.layers]
        cuts = {cut for layers in ranges for cut in (layers.first.value, layers.last.value + 1)}
        return cls(
            {key: tuple(found) for key, found in axes.items()},
            {key: tuple(found) for key, found in settings.items()},
            tuple(sorted(cuts)),
        )

    def said(self, keyword: Splits, name: str, layer: int | None = None) -> Said:
        """What lines say of the sharding of a tensor or an activation in a layer."""
        found = self.axes.get((keyword, name), ())
        return next((said for span, said in found if _holds(span, layer)), {})

    def setting(self, keyword: Sets, name: str, layer: int | None = None) -> str:
        """The memory kind, layout or type of a tensor in a layer; empty where no line says it."""
        found = self.settings.get((keyword, name), ())
        return next((value for span, value in found if _holds(span, layer)), "")

    def remat(self, layer: int) -> Policy | None:
        """What lines say of the rematerialisation of a layer."""
        policy = self.setting("remat", LAYER, layer)
        return policy_of(policy) if policy else None


NO_LINES = ProgramLines()


def lines_text(program: Program | None) -> str:
    """The decisions of a program that its plan does not say, in an order of their own; with the mesh that they need."""
    if program is None:
        return ""
    lines = sorted({format_decision(decision) for decision in beyond_plan(program)})
    return "\n".join((format_decision(program.mesh), *lines)) if lines and program.mesh else ""


def check_program_expressible(program: Program, workload: Workload, slices: int, devices_per_chip: int) -> None:
    """Raise a PlanError if the reference step does not do what a line says."""
    plan = plan_of(program)
    on_device = bool(workload.head_gathered_once) and (workload.loss_chunks or 1) > 1
    for decision in beyond_plan(program):
        reason = _inexpressible(decision, plan.degree("stage") > 1, slices, devices_per_chip)
        if on_device and _is_about_logits(decision):
            reason = "the reference step cannot constrain logits that each device computes for itself"
        if reason:
            raise PlanError(f"line {decision.at}: {reason}")


def check_mesh_only(program: Program, slices: int, devices_per_chip: int) -> None:
    """Raise a PlanError if a line says more than the mesh and its order: all that a user's own step is given."""
    for decision in program.decisions:
        if not isinstance(decision, Mesh | Order):
            reason = "your own step decides this itself: of a program it is given the mesh and the order of devices"
            raise PlanError(f"line {decision.at}: {reason}", hint="leave the line out")
        if reason := _inexpressible(decision, False, slices, devices_per_chip):
            raise PlanError(f"line {decision.at}: {reason}")


def _is_about_logits(decision: Decision) -> bool:
    return (
        isinstance(decision, Sharding)
        and decision.keyword == "constrain"
        and any(matches(name.text, "logits") for name in decision.names)
    )


def _inexpressible(decision: Decision, pipelined: bool, slices: int, devices_per_chip: int) -> str | None:
    if isinstance(decision, TensorSetting) and decision.keyword == "dtype" and decision.value.text not in KEPT_TYPES:
        return f"the reference step keeps tensors as {' or '.join(KEPT_TYPES)}"
    if isinstance(decision, Sharding | TensorSetting) and decision.layers and pipelined:
        return "the reference step pipelines only layers that are mapped alike"
    if isinstance(decision, Order) and (slices > 1 or devices_per_chip > 1):
        return "the order of devices is that of one slice, of chips with one device each"
    return None


def _holds(span: Span, layer: int | None) -> bool:
    return span is None or (layer is not None and span[0] <= layer <= span[1])
