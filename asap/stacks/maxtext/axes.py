"""The axes of MaxText's mesh, its own and those of a custom one."""

import math
import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.core.numbers import whole_number
from asap.core.text import plain
from asap.plans.axes import AXES, MAXTEXT, Axis, Network
from asap.plans.plan import Mesh, Plan
from asap.plans.torus import needs_split
from asap.stacks.maxtext.sharding_rules import ALL_NAMES, axis_roles

FILLED_BY_DEFAULT: dict[Network, str] = {"ici": "fsdp", "dcn": "data"}
"""The axis that is -1 in MaxText's base.yml; all others are 1."""

PER: dict[Network, str] = {"ici": "devices a slice", "dcn": "slices"}
"""What the degrees over each network multiply to."""

_DEGREE = re.compile(r"(ici|dcn)_\w+_parallelism")


def axis_key(network: Network, name: str) -> str:
    """``ici, fsdp`` → ``ici_fsdp_parallelism``."""
    return f"{network}_{name}_parallelism"


def open_axes(settings: Mapping[str, object], network: Network) -> tuple[str, ...]:
    """Keys of the axes that are -1, said or by MaxText's default."""
    return tuple(axis_key(network, name) for name, degree in _degrees(settings, network).items() if degree == -1)


def check_axes(settings: Mapping[str, object]) -> None:
    """Raise PlanError at a degree above 1 (``ici_*_parallelism``) of an axis that the mesh does not have."""
    mesh = axis_roles(settings).known
    for key in filter(_DEGREE.fullmatch, settings):
        name = key.partition("_")[2].removesuffix("_parallelism")
        if name not in mesh and positive(settings, key, 1, may_be_open=True) > 1:
            raise PlanError(f"{key}={settings[key]}, and the mesh has no such axis", hint=f"it has {', '.join(mesh)}")


def inexpressible_axes(settings: Mapping[str, object], slices: int = 1) -> tuple[str, ...]:
    """Why the plan of some settings cannot be said: axes above 1 that do what no axis of a plan does."""
    networks: tuple[Network, ...] = ("ici", "dcn") if slices > 1 else ("ici",)
    return tuple(
        f"{axis_key(network, name)}={degree}: {reason}"
        for network in networks
        for name, reason in axis_roles(settings).inexpressible.items()
        if (degree := positive(settings, axis_key(network, name), _default(network, name), may_be_open=True)) != 1
    )


def read_mesh(settings: Mapping[str, object], network: Network, total: int | None) -> Mesh:
    """The mesh over one network, filled up to ``total`` devices a slice (or slices).

    Raises:
        PlanError: two -1, a -1 that cannot be filled, a product that is not ``total``, or an axis without word.
    """
    roles, degrees = axis_roles(settings), _degrees(settings, network)
    unfilled = [name for name, degree in degrees.items() if degree == -1]
    if unfilled:
        degrees[unfilled[0]] = _fill(degrees, unfilled, network, total)
    product = math.prod(degrees.values())
    if total is not None and product != total:
        raise PlanError(f"{network}_*_parallelism multiply to {product}, not to the {total} {PER[network]}")
    for name, reason in roles.inexpressible.items():
        if degrees[name] > 1:
            raise PlanError(f"{axis_key(network, name)}={degrees[name]}: {reason}")
    return Mesh(**{axis: math.prod(degrees[name] for name in names) for axis, names in roles.names.items()})


def write_mesh(mesh: Mesh, network: Network, current: Mapping[str, object]) -> dict[str, str]:
    """Every degree as an override, under the names that ``current`` uses; what it sets besides goes back to 1.

    Raises:
        PlanError: the rules of ``current`` leave no axis for a degree.
    """
    roles = axis_roles(current)
    keys = {name: axis_key(network, name) for name in (*ALL_NAMES, *roles.known)}
    said = {name: str(current.get(key, _default(network, name))) for name, key in keys.items()}
    overrides = {}
    for axis in AXES:
        names, degree = roles.names.get(axis, ()), getattr(mesh, axis)
        if not names and degree > 1:
            reason = f"MaxText's mesh has no axis for {axis}={degree} under the rules of this configuration"
            raise PlanError(reason, hint=f"it has {', '.join(roles.known)}")
        if names:
            used = next((name for name in names if said[name] != "1"), names[0])
            overrides[axis_key(network, used)] = str(degree)
            overrides |= {axis_key(network, name): "1" for name in names if name != used and said[name] != "1"}
    return overrides | {axis_key(network, name): "1" for name in roles.inexpressible if said[name] != "1"}


def positive(settings: Mapping[str, object], key: str, default: int, may_be_open: bool = False) -> int:
    """A positive number, or -1 where MaxText gives that a meaning.

    Raises:
        PlanError: it is neither.
    """
    value = settings.get(key, default)
    try:
        number = whole_number(value)
    except ValueError:
        number = 0
    if number >= 1 or (may_be_open and number == -1):
        return number
    raise PlanError(f"{key} must be a positive whole number, not {plain(repr(value), 40)}")


def _degrees(settings: Mapping[str, object], network: Network) -> dict[str, int]:
    return {
        name: positive(settings, axis_key(network, name), _default(network, name), may_be_open=True)
        for name in axis_roles(settings).known
    }


def _default(network: Network, name: str) -> int:
    return -1 if name == FILLED_BY_DEFAULT[network] else 1


def _fill(degrees: dict[str, int], unfilled: list[str], network: Network, total: int | None) -> int:
    keys = " and ".join(axis_key(network, name) for name in unfilled)
    if len(unfilled) > 1:
        raise PlanError(f"{keys} are both -1, and only one axis can take what is left", hint="give one a number")
    if total is None:
        raise PlanError(f"{keys} is -1 and the number of {PER[network]} is not known", hint="name the hardware")
    given = math.prod(degree for degree in degrees.values() if degree != -1)
    if total % given:
        raise PlanError(f"{keys} is -1 and cannot be filled: {total} {PER[network]} are not a multiple of {given}")
    return total // given


SPLIT = "allow_split_physical_axes"


def write_layout(plan: Plan, current: Mapping[str, object], topology: tuple[int, ...] | None) -> dict[str, str]:
    """What has to change of the layout so that MaxText accepts the mesh of a plan on a torus."""
    splits = topology and needs_split(_in_order(plan.ici, current), topology)
    return {SPLIT: "true"} if splits and str(current.get(SPLIT)).lower() != "true" else {}


_ORDER: tuple[Axis, ...] = ("replica", "stage", "data", "seq", "model", "expert")
"""Of ``mesh_axes`` in MaxText's base.yml."""


def _in_order(ici: Mesh, current: Mapping[str, object]) -> tuple[int, ...]:
    """The degrees of a mesh as MaxText lays them; several names of an axis stay where they multiply to its degree."""
    said, found = _degrees(current, "ici"), []
    for axis in _ORDER:
        degree, each = getattr(ici, axis), [said.get(name, 1) for name in MAXTEXT[axis]]
        found += each if math.prod(each) == degree else [degree]
    return tuple(found)
