"""Modelled time: the compiler's schedule on the link model. No link was measured for it."""

from dataclasses import dataclass

import numpy as np

from asap.compiler.programs.outcome import CompileOutcome
from asap.compiler.schedule.collectives import CollectiveReader
from asap.compiler.schedule.device_rates import device_rates
from asap.compiler.schedule.hlo import Module, read_module
from asap.compiler.schedule.interconnect import Interconnect
from asap.compiler.schedule.replica_groups import NamedMesh
from asap.compiler.schedule.simulator import ScheduleSimulator
from asap.compiler.schedule.timeline import Timeline
from asap.hardware import Slice
from asap.mapping.device_order import places
from asap.mapping.language.parse import parse


@dataclass(frozen=True)
class ModelledProgram:
    """A compiled algorithm whose schedule can be run under any order of devices."""

    module: Module
    axes: tuple[tuple[str, int], ...]
    hardware: Slice

    def timeline(self, order: str) -> Timeline:
        """The schedule under an order, as a line of the language says it after ``order``.

        On a torus of 4 by 4 the compiler writes the same schedule for all orders; on larger ones it may not.
        """
        names, lengths = zip(*self.axes, strict=True)
        links = Interconnect(self.hardware, coordinates_of(order, self.hardware), (0,) * self.hardware.devices)
        collectives = CollectiveReader(self.module, NamedMesh(names, lengths), links)
        return ScheduleSimulator(self.module, collectives, device_rates(self.hardware.chip)).run()


def modelled(outcome: CompileOutcome, hardware: Slice) -> ModelledProgram:
    """The modelled program of a compilation that succeeded.

    Raises:
        BadInputError: the answer of the compiler is not scheduled HLO.
    """
    return ModelledProgram(read_module(outcome.program), outcome.axes, hardware)


def coordinates_of(order: str, hardware: Slice) -> tuple[tuple[int, ...], ...]:
    """Coordinates of the device at each place."""
    said = parse(f"order {order}")[0].order
    topology = hardware.topology or ()
    assert said is not None
    where = np.asarray(places(said.by, topology))
    found: list[tuple[int, ...]] = [()] * where.size
    for coordinates in np.ndindex(*topology):
        found[int(where[coordinates])] = tuple(int(c) for c in coordinates)
    return tuple(found)
