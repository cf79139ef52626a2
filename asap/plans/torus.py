"""How a mesh lies on a torus: which axes own whole physical axes, with all of their links and their wrap-around, and
which have to share one (How to Scale Your Model, "TPU Networking")."""

import math
from functools import lru_cache
from itertools import combinations
from typing import get_args

from asap.core.errors import PlanError
from asap.plans.axes import Axis
from asap.plans.plan import AXES, Mesh, Plan


def split_axes(mesh: Mesh, topology: tuple[int, ...]) -> frozenset[str]:
    """Mesh axes above degree 1 that have to share a physical axis with another."""
    used = frozenset(axis for axis, degree in zip(AXES, mesh.degrees, strict=True) if degree > 1)
    return used - {AXES[place] for place in _owners(mesh.degrees, topology)}


def needs_split(degrees: tuple[int, ...], topology: tuple[int, ...]) -> bool:
    """Whether JAX lays a mesh, the outermost axis first, only with ``allow_split_physical_axes``."""
    devices = math.prod(degrees) // math.prod(topology)
    if (topology, devices) in _RINGS or (len(topology), devices) == (2, 2):
        return False
    return len(_owners(degrees, topology)) < sum(degree > 1 for degree in degrees)


def physical_layout(mesh: Mesh, topology: tuple[int, ...]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Which mesh axes lie on each physical axis, and with what degree there.

    Mesh axes that can own whole physical axes do; the others share what is left, in the order of :data:`AXES`. What
    lies over the devices of a chip is left out.
    """
    lying: list[list[tuple[str, int]]] = [[] for _ in topology]
    owners = {AXES[index]: places for index, places in _owners(mesh.degrees, topology).items()}
    for axis, places in owners.items():
        for place in places:
            if place < len(topology):
                lying[place].append((axis, topology[place]))
    left = [1 if held else length for held, length in zip(lying, topology, strict=True)]
    for axis, degree in zip(AXES, mesh.degrees, strict=True):
        rest = 1 if axis in owners else degree
        for place in range(len(topology)):
            part = math.gcd(rest, left[place])
            if part > 1:
                lying[place].append((axis, part))
                rest, left[place] = rest // part, left[place] // part
    return tuple(map(tuple, lying))


_RINGS = {((2, 4), 1), ((2, 2, 4), 2)}
"""Slices that JAX orders as rings for any mesh, with the devices of a chip; it does on v2 and v3 as well."""


@lru_cache(maxsize=4096)
def _owners(degrees: tuple[int, ...], topology: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Places of the physical axes that each degree owns, as JAX lays a mesh (``jax.experimental.mesh_utils``): the last
    degree first, each over as many as there are for it. The devices of a chip are a physical axis more."""
    sides = enumerate((*topology, math.prod(degrees) // math.prod(topology)))
    free = {place: length for place, length in sides if length > 1}
    owned = {}
    for index, degree in reversed([*enumerate(degrees)]):
        choices = (chosen for count in range(len(free), 0, -1) for chosen in combinations(free, count))
        fitting = (chosen for chosen in choices if math.prod(free[place] for place in chosen) == degree)
        if (places := next(fitting, None)) is not None:
            owned[index] = places
            free = {place: length for place, length in free.items() if place not in places}
    return owned


_OWN_DEVICES: tuple[Axis, ...] = ("stage", "expert", "seq", "model")


def over_devices(plan: Plan, devices: int, slices: int = 1) -> Plan:
    """The plan over so many devices of a job: its data parallelism takes the difference, and other axes are halved
    where they do not go into a slice; slices replicate it.

    Raises:
        PlanError: it cannot be laid over so many devices.
    """
    each, rest = divmod(devices, slices)
    degrees = {axis: plan.degree(axis) for axis in _OWN_DEVICES}
    while not rest and each % math.prod(degrees.values()):
        widest = max(degrees, key=lambda axis: degrees[axis])
        if degrees[widest] % 2:
            break
        degrees[widest] //= 2
    others = math.prod(degrees.values())
    if rest or each % others:
        raise PlanError(f"cannot be laid over {devices} devices", where=str(plan), hint="name the plan to run there")
    replicated = plan.degree("data") == 1 and plan.degree("replica") > 1
    own = dict.fromkeys(get_args(Axis), 1) | degrees | {"replica" if replicated else "data": each // others}
    return plan.with_ici(**own).model_copy(update={"dcn": Mesh(replica=slices) if slices > 1 else Mesh()})
