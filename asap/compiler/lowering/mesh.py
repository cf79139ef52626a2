"""The mesh that a program is compiled for: described TPUs laid onto the torus by JAX, or virtual CPU devices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.algorithms.choices import choices_of
from asap.compiler.algorithms.matmul import grid_of
from asap.compiler.programs.request import CompileRequest
from asap.mapping.device_order import places
from asap.mapping.language.parse import parse

if TYPE_CHECKING:
    from jax.sharding import Mesh


def slice_name(request: CompileRequest) -> str:
    """Name of the slice in libtpu: ``v5e:4x4``."""
    return f"{request.chip}:{'x'.join(map(str, request.topology))}"


def describe_mesh(request: CompileRequest) -> "Mesh":
    """The mesh of a request, with the axes of its plan; of an algorithm its grid."""
    import jax
    from jax.experimental import mesh_utils, topologies
    from jax.sharding import Mesh

    from asap.plans import AXES

    if request.on_cpu:
        return Mesh(np.array(jax.devices("cpu")).reshape([request.plan.degree(axis) for axis in AXES]), AXES)
    options: dict[str, Any] = {"num_slices": request.slices} if request.slices > 1 else {}
    if request.chip == "v4":
        options["chip_config_name"] = "megacore"
    devices = topologies.get_topology_desc(slice_name(request), "tpu", **options).devices
    ici, dcn = request.plan.ici.degrees, request.plan.dcn.degrees
    program = parse(request.mapping)[0]
    order = program.order
    if request.problem is not None:
        in_rows = sorted(devices, key=lambda device: tuple(device.coords))
        return grid_of(choices_of(program, len(devices)), in_rows, program, request.topology)
    if order is not None:
        placed = _ordered(devices, places(order.by, request.topology)).reshape(ici)
    elif request.slices > 1:
        placed = mesh_utils.create_hybrid_device_mesh(ici, dcn, devices, allow_split_physical_axes=True)
    else:
        placed = mesh_utils.create_device_mesh(ici, devices, allow_split_physical_axes=True)
    return Mesh(placed, AXES)


def _ordered(devices: Sequence[Any], places: np.ndarray) -> np.ndarray:
    """Devices by the place of their coordinates."""
    found = np.empty(len(devices), object)
    for device in devices:
        found[places[tuple(device.coords[: places.ndim])]] = device
    return found
