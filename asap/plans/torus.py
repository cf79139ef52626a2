"""How a mesh lies on a torus: which axes own whole physical axes, and which have to share one.

An axis that owns whole physical axes has all of their links and their wrap-around to itself; one that is laid over
a part of a physical axis has not (How to Scale Your Model, "TPU Networking").
"""

import math
from functools import lru_cache
from typing import get_args

from asap.core.errors import PlanError
from asap.plans.axes import Axis
from asap.plans.plan import AXES, Mesh, Plan


def aligned_axes(mesh: Mesh, topology: tuple[int, ...]) -> frozenset[str]:
    """The largest set of mesh axes that can own whole physical axes at the same time.

    An axis of degree 1 needs nothing and is not counted.
    """
    return frozenset(_owners(mesh, topology))


def split_axes(mesh: Mesh, topology: tuple[int, ...]) -> frozenset[str]:
    """Mesh axes above degree 1 that have to share a physical axis with another."""
    used = frozenset(axis for axis, degree in zip(AXES, mesh.degrees, strict=True) if degree > 1)
    return used - aligned_axes(mesh, topology)


def physical_layout(mesh: Mesh, topology: tuple[int, ...]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Which mesh axes lie on each physical axis, and with what degree there.

    Mesh axes that can own whole physical axes do; the others share what is left, in the order of :data:`AXES`. A degree
    that the torus has no room for (two devices a chip) is left out.
    """
    lying: list[list[tuple[str, int]]] = [[] for _ in topology]
    owners = _owners(mesh, topology)
    for axis, places in owners.items():
        for place in places:
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


def _owners(mesh: Mesh, topology: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The largest set of mesh axes that own whole physical axes, with the places of those."""
    wanted = tuple(degree for degree in mesh.degrees if degree > 1)
    names = tuple(axis for axis, degree in zip(AXES, mesh.degrees, strict=True) if degree > 1)
    best = _largest(wanted, tuple((place, length) for place, length in enumerate(topology) if length > 1))
    return {names[index]: places for index, places in best}


_Owned = tuple[tuple[int, tuple[int, ...]], ...]


@lru_cache(maxsize=4096)
def _largest(wanted: tuple[int, ...], physical: tuple[tuple[int, int], ...]) -> _Owned:
    if not wanted:
        return ()
    *head, last = wanted
    best = _largest(tuple(head), physical)
    for chosen in range(1, 1 << len(physical)):
        owned = [axis for bit, axis in enumerate(physical) if chosen >> bit & 1]
        if math.prod(length for _, length in owned) != last:
            continue
        rest = tuple(axis for bit, axis in enumerate(physical) if not chosen >> bit & 1)
        candidate = (*_largest(tuple(head), rest), (len(head), tuple(place for place, _ in owned)))
        best = max(best, candidate, key=len)
    return best


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
