"""MaxText's own layouts of a mesh on the chips: ``custom_mesh`` and ``allow_split_physical_axes``.

``custom_mesh`` (``is_valid_custom_mesh`` in MaxText's utils/max_utils.py) lays two axes of certain degrees over rings
of a 16x16 slice; MaxText refuses any other mesh under it.
"""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.plan import Mesh, Plan
from asap.plans.torus import split_axes

CUSTOM_MESH, SPLIT = "custom_mesh", "allow_split_physical_axes"
EMPTY = '""'
"""An empty value, as YAML and MaxText's command line read it."""

HYBRID_RINGS = {"hybrid_ring_64x4": {1, 4, 64}, "hybrid_ring_32x8": {1, 8, 32}}
"""Layout → the degrees of all axes of the mesh, inside a slice."""


def check_custom_mesh(settings: Mapping[str, object], ici: Mesh) -> None:
    """Refuse a layout that MaxText does not have, or not for this mesh.

    Raises:
        PlanError: with MaxText's condition.
    """
    name = settings.get(CUSTOM_MESH)
    if not name:
        return
    if str(name) not in HYBRID_RINGS:
        raise PlanError(f"MaxText has no custom_mesh {plain(name, 40)}", hint=f"one of {', '.join(HYBRID_RINGS)}")
    if not _fits(str(name), ici):
        degrees = " and ".join(str(degree) for degree in sorted(HYBRID_RINGS[str(name)] - {1}))
        raise PlanError(f"custom_mesh={name} is for a mesh of axes {degrees}, not {ici or 'of one device'}")


def write_layout(plan: Plan, current: Mapping[str, object], topology: tuple[int, ...] | None) -> dict[str, str]:
    """What has to change of the layout so that MaxText accepts the mesh of a plan on a torus."""
    name, overrides = str(current.get(CUSTOM_MESH) or ""), {}
    if name and not _fits(name, plan.ici):
        overrides[CUSTOM_MESH] = EMPTY
    keeps_rings = name and not overrides
    split = str(current.get(SPLIT)).lower() == "true"
    if topology and not keeps_rings and not split and split_axes(plan.ici, topology):
        overrides[SPLIT] = "true"
    return overrides


def _fits(name: str, ici: Mesh) -> bool:
    return {1, *ici.degrees} == HYBRID_RINGS.get(name)
