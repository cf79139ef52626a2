"""Programs run through the timeline without a compiler."""

from asap.compiler.groups import NamedMesh
from asap.compiler.hlo import read_module
from asap.compiler.links import Fabric
from asap.compiler.rates import rates
from asap.compiler.timeline import Simulator, Timeline
from asap.compiler.transfers import Reader
from asap.hardware import Slice, resolve_hardware


def fabric_of(hardware: Slice) -> Fabric:
    """Devices numbered along the last torus axis first."""
    places = [()]
    for length in hardware.topology or ():
        places = [(*place, index) for place in places for index in range(length)]
    return Fabric(hardware, tuple(places * hardware.slices), tuple(s for s in range(hardware.slices) for _ in places))


def simulate(text: str, name: str = "v5e-16", mesh: NamedMesh | None = None) -> Timeline:
    """The timeline of a program on a slice; its mesh is the torus itself, ``data`` by ``model``."""
    hardware = resolve_hardware(name).slice
    module = read_module(text)
    mesh = mesh or NamedMesh(("data", "model"), (4, 4))
    return Simulator(module, Reader(module, mesh, fabric_of(hardware)), rates(hardware.chip)).run()
