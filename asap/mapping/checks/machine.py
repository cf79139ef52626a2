"""The mesh against the machine, and the order of devices: maps have to be permutations of the torus."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from asap.core.feedback import Repair
from asap.hardware import Slice
from asap.mapping.coverage import Target
from asap.mapping.device_order import block_fits, places
from asap.mapping.language.expression import DivisionError, OverflowedError, variables
from asap.mapping.language.feedback import Code, Feedback, Position, delete_line, feedback, replace
from asap.mapping.language.program import Block, Degree, IndexMap, Mesh, Order, Program
from asap.plans.axes import Network

if TYPE_CHECKING:
    import numpy as np

_START = Position(1, 1, 1)


def check_mesh(program: Program, target: Target | None, hardware: Slice | None) -> Iterator[Feedback]:
    """No mesh, an axis that the mesh has twice, and a mesh that is not the machine."""
    mesh = program.mesh
    if mesh is None:
        if hardware is not None and target is not None and not program.unread:
            line = f"mesh data={hardware.devices_per_slice}" + (f" dcn.data={n}" if (n := hardware.slices) > 1 else "")
            found = f"no line says the mesh of the {hardware.devices} devices"
            yield feedback(Code.MESH_PRODUCT, _START, found, f"add {line}", repair=replace(_START, f"{line}\n"))
        return
    seen: dict[tuple[str, str], Degree] = {}
    for degree in mesh.degrees:
        earlier = seen.setdefault((degree.network, degree.axis.text), degree)
        if earlier is not degree:
            found = f"the mesh has {degree.axis.text} twice"
            yield feedback(
                Code.AXIS_TWICE, degree.axis.at, found, "leave one out", other=earlier.axis.at, repair=_without(degree)
            )
    if hardware is not None:
        yield from _check_product(mesh, "ici", hardware.devices_per_slice, f"a slice of {_machine(hardware)} has")
        yield from _check_product(mesh, "dcn", hardware.slices, f"{_machine(hardware)} has")


def check_order(program: Program, hardware: Slice | None) -> Iterator[Feedback]:
    """Blocks that do not tile the torus, and maps that are no permutation of it."""
    order = program.order
    if order is None or hardware is None:
        return
    topology = hardware.topology
    if topology is None:
        found = f"{hardware.chip.title} has no torus, so its devices have no order"
        yield feedback(Code.NOT_APPLICABLE, order.at, found, "leave the line out", repair=delete_line(order.at.line))
    elif isinstance(order.by, Block) and not block_fits(order.by, topology):
        sides = ",".join(str(side.value) for side in order.by.sides)
        at = order.by.sides[0].at.to(order.by.sides[-1].at)
        tiled = ",".join(str(2 - length % 2) for length in topology)
        found = f"blocks of ({sides}) do not tile a torus of {hardware.shape}"
        yield feedback(Code.NOT_DIVISIBLE, at, found, f"write ({tiled})", repair=replace(at, tiled))
    elif isinstance(order.by, IndexMap):
        yield from _check_map(order, order.by, topology)


def _check_map(order: Order, map: IndexMap, topology: tuple[int, ...]) -> Iterator[Feedback]:
    """Whether a map gives every place once; unknown coordinates are reported elsewhere."""
    names = [parameter.text for parameter in map.parameters]
    row = replace(order.at, "order row")
    if len(set(names)) < len(names) or len(names) != len(topology):
        found = f"f takes {len(set(names))} coordinates, and the torus has {len(topology)} axes"
        at = map.parameters[0].at.to(map.parameters[-1].at)
        advice = f"write f({','.join('ijklmn'[: len(topology)])}) = …"
        yield feedback(Code.NOT_A_PERMUTATION, at, found, advice, repair=row)
        return
    if any(variable.name not in names for variable in variables(map.expression)):
        return
    devices = math.prod(topology)
    try:
        found = places(map, topology)
    except DivisionError as error:
        reason = f"{_call(error.coordinates)} divides by zero"
        advice = "guard it: divisor ? a / divisor : b"
        yield feedback(Code.DIVISION_BY_ZERO, error.at, reason, advice, repair=row)
        return
    except OverflowedError:
        reason = "a value of the map may leave 64 bits"
        yield feedback(Code.TOO_LARGE, order.at, reason, "use smaller numbers", repair=row)
        return
    yield from _check_permutation(order, found.reshape(topology), devices)


def _check_permutation(order: Order, found: "np.ndarray", devices: int) -> Iterator[Feedback]:
    import numpy as np

    row = replace(order.at, "order row")
    outside = np.argwhere((found < 0) | (found >= devices))
    if len(outside):
        where = tuple(int(c) for c in outside[0])
        reason = f"{_call(where)} is {found[where]}; places are 0 to {devices - 1}"
        advice = f"end the map with % {devices}"
        yield feedback(Code.NOT_A_PERMUTATION, order.at, reason, advice, repair=row)
        return
    places, counts = np.unique(found, return_counts=True)
    if len(places) < devices:
        twice = int(places[np.argmax(counts > 1)])
        one, other = (tuple(int(c) for c in at) for at in np.argwhere(found == twice)[:2])
        reason = f"{_call(one)} and {_call(other)} are both {twice}"
        advice = "give every device a place of its own, or write order row"
        yield feedback(Code.NOT_A_PERMUTATION, order.at, reason, advice, repair=row)


def _call(coordinates: tuple[int, ...]) -> str:
    return f"f({','.join(map(str, coordinates))})"


def _check_product(mesh: Mesh, network: Network, wanted: int, has: str) -> Iterator[Feedback]:
    degrees = [degree for degree in mesh.degrees if degree.network == network]
    product = math.prod(degree.degree.value for degree in degrees)
    if product == wanted:
        return
    kind = "devices" if network == "ici" else "slices"
    found = f"the mesh multiplies to {product} {kind}, but {has} {wanted}"
    for degree in sorted(degrees, key=lambda degree: -degree.degree.value):
        right, rest = divmod(degree.degree.value * wanted, product)
        if right and not rest:
            advice, repair = f"write {_text(degree, right)}", replace(degree.degree.at, str(right))
            break
    else:
        advice, repair = f"use degrees that multiply to {wanted}", _rewritten(mesh, network, wanted)
    yield feedback(Code.MESH_PRODUCT, mesh.at, found, advice, repair=repair)


def _rewritten(mesh: Mesh, network: Network, wanted: int) -> Repair:
    """The mesh with all devices of a network on the first axis."""
    kept = [_text(degree) for degree in mesh.degrees if degree.network != network]
    prefix = "dcn." if network == "dcn" else ""
    axis = next((d.axis.text for d in mesh.degrees if d.network == network), mesh.degrees[0].axis.text)
    filled = [f"{prefix}{axis}={wanted}"] if wanted > 1 else []
    terms = (*filled, *kept) if network == "ici" else (*kept, *filled)
    return replace(mesh.at, " ".join(("mesh", *(terms or (f"{axis}=1",)))))


def _text(degree: Degree, value: int | None = None) -> str:
    return f"{'dcn.' if degree.network == 'dcn' else ''}{degree.axis.text}={value or degree.degree.value}"


def _without(degree: Degree) -> Repair:
    first = degree.axis.at.column - (4 if degree.network == "dcn" else 0)
    return Repair(line=degree.axis.at.line, column=first, end_column=degree.degree.at.end, text="")


def _machine(hardware: Slice) -> str:
    return f"{hardware.chip.title} {hardware.shape}".strip()
