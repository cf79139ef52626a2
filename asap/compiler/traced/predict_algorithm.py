"""The time of a mapping program of an algorithm, predicted from its trace: without compiler and without devices."""

from dataclasses import dataclass, field

from asap.compiler.algorithms.build import BENCHMARKS, build
from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Problem
from asap.compiler.algorithms.on_grid import step_on
from asap.compiler.mapped.judge import read_choices
from asap.compiler.mapped.modelled import coordinates_of
from asap.compiler.schedule.device_rates import device_rates
from asap.compiler.schedule.interconnect import Interconnect
from asap.compiler.schedule.replica_groups import NamedMesh
from asap.compiler.toolchain.versions import compiler_versions
from asap.compiler.traced.operations import Operation
from asap.compiler.traced.read_jaxpr import operations_of
from asap.compiler.traced.schedule import seconds_of
from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.hardware import Slice
from asap.mapping.language.format import format_order
from asap.mapping.language.parse import parse


@dataclass(frozen=True)
class AlgorithmPredictor:
    """Predicts programs for one slice; each choice is traced once for all orders of devices.

    Args:
        hardware: one slice of TPUs.
        problem: sizes to predict for; those of the benchmark by default.
    """

    hardware: Slice
    problem: Problem | None = None
    _traced: dict[Choices, tuple[Operation, ...]] = field(default_factory=dict, repr=False)
    _links: dict[str, Interconnect] = field(default_factory=dict, repr=False)

    def seconds(self, text: str) -> float:
        """Predicted time of a program that passes the checks.

        Raises:
            InsufficientEvidenceError: it cannot be traced, or does what is not read.
        """
        choices, order = read_choices(text, self.hardware), parse(text)[0].order
        if choices not in self._traced:
            problem = self.problem or BENCHMARKS[choices.algorithm].problem
            self._traced[choices] = traced(choices, problem, self.hardware)
        said = format_order(order) if order else "row"
        if said not in self._links:
            slices = (0,) * self.hardware.devices
            self._links[said] = Interconnect(self.hardware, coordinates_of(said, self.hardware), slices)
        return seconds_of(self._traced[choices], self._links[said], device_rates(self.hardware.chip))


def traced(choices: Choices, problem: Problem, hardware: Slice) -> tuple[Operation, ...]:
    """What each device does under some choices.

    Raises:
        InsufficientEvidenceError: it cannot be traced, or does what is not read.
        ConfigError: jax is not installed.
    """
    compiler_versions(tpu=False)
    import jax
    from jax.sharding import AbstractMesh

    try:
        step, arguments = step_on(build(choices, problem), AbstractMesh(choices.grid, choices.axes), "bfloat16")
        jaxpr = jax.make_jaxpr(step)(*arguments).jaxpr
    except Exception as error:
        reason = plain(f"it cannot be traced: {type(error).__name__}: {error}", 300)
        raise InsufficientEvidenceError(reason, where=choices.algorithm) from error
    onchip = hardware.chip.onchip_bytes / hardware.chip.devices
    return operations_of(jaxpr, NamedMesh(choices.axes, choices.grid), onchip)
