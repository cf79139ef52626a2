"""How a mesh lies on a torus: which axes own whole physical axes, and which have to share one.

An axis that owns whole physical axes has all of their links and their wrap-around to itself; one that is laid over
a part of a physical axis has not (How to Scale Your Model, "TPU Networking").
"""

import math
from functools import lru_cache

from asap.plans.plan import AXES, Mesh


def aligned_axes(mesh: Mesh, topology: tuple[int, ...]) -> frozenset[str]:
    """The largest set of mesh axes that can own whole physical axes at the same time.

    An axis of degree 1 needs nothing and is not counted.
    """
    wanted = tuple(degree for degree in mesh.degrees if degree > 1)
    names = tuple(axis for axis, degree in zip(AXES, mesh.degrees, strict=True) if degree > 1)
    best = _largest(wanted, tuple(length for length in topology if length > 1))
    return frozenset(names[index] for index in best)


def split_axes(mesh: Mesh, topology: tuple[int, ...]) -> frozenset[str]:
    """Mesh axes above degree 1 that have to share a physical axis with another."""
    used = frozenset(axis for axis, degree in zip(AXES, mesh.degrees, strict=True) if degree > 1)
    return used - aligned_axes(mesh, topology)


@lru_cache(maxsize=4096)
def _largest(wanted: tuple[int, ...], physical: tuple[int, ...]) -> tuple[int, ...]:
    if not wanted:
        return ()
    *head, last = wanted
    best = _largest(tuple(head), physical)
    for chosen in range(1, 1 << len(physical)):
        owned = [length for bit, length in enumerate(physical) if chosen >> bit & 1]
        if math.prod(owned) != last:
            continue
        rest = tuple(length for bit, length in enumerate(physical) if not chosen >> bit & 1)
        candidate = (*_largest(tuple(head), rest), len(head))
        best = max(best, candidate, key=len)
    return best
