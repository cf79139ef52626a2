"""MaxText's mesh axes, read into a mesh and written from it.

MaxText names an axis of the mesh inside a slice ``ici_<name>_parallelism`` and between slices
``dcn_<name>_parallelism``; one ``-1`` on each side takes the devices that are left.
"""

import difflib
import math
import re
from collections.abc import Mapping
from typing import Literal

from asap.core.errors import PlanError
from asap.plans.plan import AXES, Axis, Mesh

Network = Literal["ici", "dcn"]

NAMES: dict[Axis, tuple[str, ...]] = {
    "replica": ("data",),
    "data": ("fsdp", "fsdp_transpose"),
    "seq": ("context", "sequence", "context_usp_ulysses"),
    "model": ("tensor", "tensor_transpose", "tensor_sequence"),
    "expert": ("expert",),
    "stage": ("pipeline",),
}
"""MaxText's names of each axis, of its head and of earlier releases; the first is the one that is written."""

WITHOUT_WORD = ("diloco", "autoregressive", "context_autoregressive")
"""MaxText axes that a plan cannot express."""

FILLED_BY_DEFAULT: dict[Network, str] = {"ici": "fsdp", "dcn": "data"}
"""The axis that is -1 in MaxText's base.yml; all others are 1."""

PER: dict[Network, str] = {"ici": "devices a slice", "dcn": "slices"}
"""What the degrees over each network multiply to."""

_ALL = tuple(name for group in (*NAMES.values(), WITHOUT_WORD) for name in group)
_DEGREE = re.compile(r"(ici|dcn)_\w+_parallelism")


def axis_key(network: Network, name: str) -> str:
    """``ici, fsdp`` → ``ici_fsdp_parallelism``."""
    return f"{network}_{name}_parallelism"


def open_axes(settings: Mapping[str, object], network: Network) -> tuple[str, ...]:
    """Keys of the axes that are -1, said or by MaxText's default."""
    return tuple(axis_key(network, name) for name, degree in _degrees(settings, network).items() if degree == -1)


def check_axes(settings: Mapping[str, object]) -> None:
    """Refuse ``ici_*_parallelism`` and ``dcn_*_parallelism`` that MaxText does not have.

    Raises:
        PlanError: with the nearest key.
    """
    known = [axis_key(network, name) for network in PER for name in _ALL]
    for key in settings:
        if _DEGREE.fullmatch(key) and key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise PlanError(f"unknown MaxText axis {key}", hint=f"did you mean {near[0]}?" if near else None)


def read_mesh(settings: Mapping[str, object], network: Network, total: int | None) -> Mesh:
    """The mesh over one network, filled up to ``total`` devices a slice (or slices).

    Raises:
        PlanError: two -1, a -1 that cannot be filled, a product that is not ``total``, or an axis without word.
    """
    degrees = _degrees(settings, network)
    unfilled = [name for name, degree in degrees.items() if degree == -1]
    if unfilled:
        degrees[unfilled[0]] = _fill(degrees, unfilled, network, total)
    product = math.prod(degrees.values())
    if total is not None and product != total:
        raise PlanError(f"{network}_*_parallelism multiply to {product}, not to the {total} {PER[network]}")
    for name in WITHOUT_WORD:
        if degrees[name] > 1:
            raise PlanError(f"{axis_key(network, name)}={degrees[name]}: a plan has no word for this axis")
    return Mesh(**{axis: math.prod(degrees[name] for name in names) for axis, names in NAMES.items()})


def write_mesh(mesh: Mesh, network: Network, current: Mapping[str, object]) -> dict[str, str]:
    """Every degree as an override, under the names that ``current`` uses; what it sets besides goes back to 1."""
    said = {name: str(current.get(axis_key(network, name), degree)) for name, degree in _default(network).items()}
    overrides = {}
    for axis in AXES:
        used = next((name for name in NAMES[axis] if said[name] != "1"), NAMES[axis][0])
        overrides[axis_key(network, used)] = str(getattr(mesh, axis))
        overrides |= {axis_key(network, name): "1" for name in NAMES[axis] if name != used and said[name] != "1"}
    return overrides | {axis_key(network, name): "1" for name in WITHOUT_WORD if said[name] != "1"}


def whole_number(settings: Mapping[str, object], key: str, default: int, may_be_open: bool = False) -> int:
    """A positive number, or -1 where MaxText gives that a meaning.

    Raises:
        PlanError: it is neither.
    """
    text = str(settings.get(key, default))
    number = int(text) if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) else 0
    if number >= 1 or (may_be_open and number == -1):
        return number
    raise PlanError(f"{key} must be a positive whole number, not {text[:40]!r}")


def _degrees(settings: Mapping[str, object], network: Network) -> dict[str, int]:
    return {
        name: whole_number(settings, axis_key(network, name), degree, may_be_open=True)
        for name, degree in _default(network).items()
    }


def _default(network: Network) -> dict[str, int]:
    return dict.fromkeys(_ALL, 1) | {FILLED_BY_DEFAULT[network]: -1}


def _fill(degrees: dict[str, int], unfilled: list[str], network: Network, total: int | None) -> int:
    keys = " and ".join(axis_key(network, name) for name in unfilled)
    if len(unfilled) > 1:
        raise PlanError(f"{keys} are both -1, and only one axis can take what is left", hint="give one a number")
    if total is None:
        raise PlanError(f"{keys} is -1 and the number of {PER[network]} is not known", hint="name the hardware")
    given = math.prod(degree for degree in degrees.values() if degree != -1)
    if total % given:
        raise PlanError(f"{keys} is -1 and cannot be filled: {total} {PER[network]} are no multiple of {given}")
    return total // given
