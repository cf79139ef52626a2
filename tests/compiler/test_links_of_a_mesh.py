"""The step model's links of each mesh axis, beside those of the link model on the mesh that JAX makes."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import prod

import numpy as np
import pytest

from asap.compiler.lowering.mesh import describe_mesh
from asap.compiler.programs.request import CompileRequest
from asap.compiler.schedule.interconnect import Interconnect
from asap.hardware import resolve_hardware
from asap.models import Workload
from asap.plans import AXES, Plan
from asap.plans.axes import Axis
from asap.prediction.step_model.encoding import hardware_inputs
from asap.prediction.step_model.torus import links_of
from compiled_tables import configure
from tests.cases import cases

pytestmark = pytest.mark.compiles
MESHES: tuple[tuple[Axis, ...], ...] = (("data", "seq", "model"), ("data", "model", "expert"))
"""Each from its slowest axis to its fastest."""


@cases("machine, agree")
def test_the_links_of_an_axis_are_those_of_its_groups_on_the_mesh_of_jax(machine, agree):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=configure, initargs=((),)) as pool:
        found = pool.submit(links_of_all_meshes, machine).result()
    assert len(found) > 30
    assert np.mean([predicted == pytest.approx(modelled) for predicted, modelled in found]) >= agree


def links_of_all_meshes(machine: str) -> list[tuple[float, float]]:
    """Of each axis of each mesh of the machine: by the step model, and by the link model."""
    hardware = resolve_hardware(machine).slice
    inputs = hardware_inputs(hardware, Workload(global_batch=1, sequence_length=8))
    found = []
    for axes, degrees in product(MESHES, product([1, 2, 4, 8, 16, 64], repeat=3)):
        if prod(degrees) != hardware.devices:
            continue
        mesh = _mesh(machine, axes, degrees)
        for place, (axis, degree) in enumerate(zip(axes, degrees, strict=True)):
            if degree > 1:
                links = links_of(inputs, float(degree), float(prod(degrees[place + 1 :])))
                found.append((float(links), _links(mesh, axis, machine)))
    return found


def _mesh(machine: str, axes: tuple[Axis, ...], degrees: tuple[int, ...]) -> np.ndarray:
    hardware = resolve_hardware(machine).slice
    plan = Plan.parse(" ".join(f"{axis}={degree}" for axis, degree in zip(axes, degrees, strict=True)))
    request = CompileRequest(plan=plan, chip=hardware.chip.name, topology=hardware.topology or (), slices=1)
    return describe_mesh(request).devices


def _links(mesh: np.ndarray, axis: Axis, machine: str) -> float:
    hardware = resolve_hardware(machine).slice
    chips = tuple(tuple(device.coords[: len(hardware.topology or ())]) for device in mesh.ravel())
    places = np.moveaxis(np.arange(mesh.size).reshape(mesh.shape), AXES.index(axis), -1)
    groups = tuple(tuple(map(int, group)) for group in places.reshape(-1, mesh.shape[AXES.index(axis)]))
    torus = hardware.chip.torus
    return Interconnect(hardware, chips, (0,) * mesh.size).gather_bandwidth(groups) / torus.link_bandwidth
