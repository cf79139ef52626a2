"""Mapped programs run on virtual CPU devices next to the plain program, and the modelled time of a schedule."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path

import numpy as np

from asap.compiler.mapped.failures import Difference, difference
from asap.compiler.programs.request import CompileOutcome
from asap.compiler.schedule.collectives import CollectiveReader
from asap.compiler.schedule.hlo import Module, read_module
from asap.compiler.schedule.interconnect import Interconnect, device_rates
from asap.compiler.schedule.simulator import ScheduleSimulator, Timeline
from asap.compiler.toolchain.interpreters import virtual_devices
from asap.compiler.toolchain.versions import compiler_versions
from asap.core.errors import AsapError
from asap.core.files import scratch_folder
from asap.core.text import plain
from asap.hardware import Slice
from asap.mapping.device_order import places
from asap.mapping.language.parse import parse
from asap.plans.replica_groups import NamedMesh

_LIMIT_S = 600.0


def differences(programs: Sequence[str], topology: tuple[int, ...]) -> list[Difference]:
    """How the result of each program differs from the plain program's.

    Args:
        programs: checked mapping programs of algorithms.
        topology: of the machine; there are as many virtual devices.

    Raises:
        AsapError: the process died.
        ConfigError: jax is not installed.
    """
    compiler_versions(tpu=False)
    with scratch_folder("virtual") as folder:
        (folder / "request.json").write_text(json.dumps({"programs": list(programs), "topology": topology}))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": virtual_devices(prod(topology))}
        command = [sys.executable, "-m", "asap.compiler.mapped.virtual_run", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise AsapError(f"the run on virtual devices died: {plain(reason, 200)}")
        return [Difference(**each) for each in json.loads((folder / "answer.json").read_text())]


def _main(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    found = [_run(text, tuple(request["topology"])) for text in request["programs"]]
    (folder / "answer.json").write_text(json.dumps([asdict(each) for each in found]))


def _run(text: str, topology: tuple[int, ...]) -> Difference:
    import jax

    from asap.compiler.algorithms.build import BENCHMARKS, build
    from asap.compiler.algorithms.choices import choices_of
    from asap.compiler.algorithms.matmul import grid_of, run_on
    from asap.mapping.language.parse import parse

    program, _ = parse(text)
    choices = choices_of(program, len(jax.devices()))
    try:
        distributed = build(choices, BENCHMARKS[choices.algorithm].small)
        found = run_on(distributed, grid_of(choices, jax.devices(), program, topology))
    except Exception as error:
        return Difference(float("inf"), f"raises {plain(f'{type(error).__name__}: {error}', 300)}")
    return difference(found, distributed.plain())


if __name__ == "__main__":
    _main(Path(sys.argv[1]))


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
