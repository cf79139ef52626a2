"""Logical axes of the reference training step, and the mesh axes over which they are sharded.

The rules are MaxText's (``logical_axis_rules`` in configs/base.yml): parameters are sharded over the FSDP axis and,
along the same dimension, over the sequence and expert axes; the residual stream is sharded over the tensor axis.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asap.plans import AXES

if TYPE_CHECKING:
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

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

    mesh: "Mesh"

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


def logical_mesh(mesh: "Mesh") -> LogicalMesh:
    """The logical mesh on a mesh that names all axes."""
    if tuple(mesh.axis_names) != AXES:
        raise ValueError(f"the mesh needs the axes {', '.join(AXES)}")
    return LogicalMesh(mesh)
