"""The time of a mapping program of an algorithm, predicted from its trace: without compiler and without devices."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from asap.compiler.algorithms.build import BENCHMARKS, build
from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import Problem, step_on
from asap.compiler.mapped.judge import read_choices
from asap.compiler.mapped.virtual_run import coordinates_of
from asap.compiler.schedule.interconnect import DeviceRates, Interconnect, TorusDirection, device_rates
from asap.compiler.toolchain.versions import compiler_versions
from asap.compiler.traced.operations import Operation, Send
from asap.compiler.traced.read_jaxpr import operations_of
from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.hardware import Slice
from asap.mapping.language.format import format_order
from asap.mapping.language.parse import parse
from asap.plans.replica_groups import NamedMesh

_Resource = TorusDirection | str
_DEVICE, _GROUPS = "device", "groups"


def seconds_of(operations: Sequence[Operation], links: Interconnect, rates: DeviceRates) -> float:
    """Time until all have ended.

    Args:
        operations: of one device; none comes after a later one.
        links: with the coordinates of the places of the grid.
        rates: of the device.
    """
    ends: dict[int, float] = {}
    free: dict[_Resource, float] = {}
    waits = [len(each.after) for each in operations]
    later: list[list[int]] = [[] for _ in operations]
    for index, operation in enumerate(operations):
        for before in operation.after:
            later[before].append(index)
    ready = [(0.0, index) for index, count in enumerate(waits) if not count]
    while ready:
        _, index = heapq.heappop(ready)
        operation = operations[index]
        taken, seconds = _taken(operation, links, rates)
        start = max([0.0, *(ends[each] for each in operation.after), *(free.get(each, 0.0) for each in taken)])
        if ready and (start, index) > ready[0]:
            heapq.heappush(ready, (start, index))
            continue
        ends[index] = start + seconds
        free |= {resource: start + share * seconds for resource, share in taken.items()}
        for each in later[index]:
            waits[each] -= 1
            if not waits[each]:
                heapq.heappush(ready, (ends[index], each))
    return max(ends.values(), default=0.0)


def _taken(operation: Operation, links: Interconnect, rates: DeviceRates) -> tuple[dict[_Resource, float], float]:
    """What an operation occupies, each for which share of its time, and its time."""
    if operation.send is not None:
        return _sent(operation.send, links)
    if operation.body:
        return {_DEVICE: 1.0}, operation.times * seconds_of(operation.body, links, rates)
    seconds = max(rates.matmul_seconds(operation.flops), rates.memory_seconds(operation.size))
    return ({_DEVICE: 1.0} if seconds else {}), seconds


def _sent(send: Send, links: Interconnect) -> tuple[dict[_Resource, float], float]:
    if send.kind == "collective-permute":
        return {**links.permute_directions(send.pairs)}, links.permute_seconds(send.size, send.pairs)
    alone = () if send.kind == "all-gather" else (_DEVICE,)
    taken: dict[_Resource, float] = dict.fromkeys((*links.directions(send.groups[0]), _GROUPS, *alone), 1.0)
    return taken, links.seconds(send.kind, send.size, send.groups)


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
