"""Programs run through the timeline without a compiler."""

from asap.compiler.schedule.collectives import CollectiveReader
from asap.compiler.schedule.hlo import read_module
from asap.compiler.schedule.interconnect import Interconnect, device_rates
from asap.compiler.schedule.simulator import ScheduleSimulator, Timeline
from asap.hardware import Slice, resolve_hardware
from asap.plans.replica_groups import NamedMesh


def interconnect_of(hardware: Slice) -> Interconnect:
    """Devices numbered along the last torus axis first."""
    coordinates = [()]
    for length in hardware.topology or ():
        coordinates = [(*chip, index) for chip in coordinates for index in range(length)]
    return Interconnect(
        hardware, tuple(coordinates * hardware.slices), tuple(s for s in range(hardware.slices) for _ in coordinates)
    )


def simulate(text: str, name: str = "v5e-16", mesh: NamedMesh | None = None) -> Timeline:
    """The timeline of a program on a slice; its mesh is the torus itself, ``data`` by ``model``."""
    hardware = resolve_hardware(name).slice
    module = read_module(text)
    mesh = mesh or NamedMesh(("data", "model"), (4, 4))
    return ScheduleSimulator(
        module, CollectiveReader(module, mesh, interconnect_of(hardware)), device_rates(hardware.chip)
    ).run()
