"""The tables of a GPU run of JAX, from the events of its streams and the compiled programs in the profile."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from asap.core.units import GIB
from asap.profiles.collectives import is_host_copy_event
from asap.profiles.cpu import PS_PER_NS, has_groups_of_tensorflow, joined_steps
from asap.profiles.gpu.chip import model_of, peaks_of
from asap.profiles.gpu.steps import LAUNCH, STREAM, Events, read_launches, step_rows
from asap.profiles.hlo.cost import Costs, category_of, costs_of, expression_of
from asap.profiles.hlo.program import DAMAGED, Instruction, instructions_of
from asap.profiles.kpis import after_start_up
from asap.profiles.totals import PS
from asap.profiles.xplane.columns import alike
from asap.profiles.xplane.planes import Plane, Value
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import HloRow, KernelRow, MemoryProfile, Peaks, RooflineRow, StepRow, Summary

_DEVICE = "/device:GPU:"
_OPERATION, _PROGRAM, _KERNEL, _PATH = "hlo_op", "program_id", "kernel_details", "name"
_TO_DEVICE = ("MemcpyH2D", "CopyHostToDevice")
US_PER_PS, GIGA = 1e-6, 1e9


@dataclass
class _Total:
    """Picoseconds, and how often each kernel ran."""

    time: int = 0
    kernels: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, kernel: str, count: int, time: int) -> None:
        self.time += time
        self.kernels[kernel] += count

    @property
    def occurrences(self) -> int:
        """Runs of an operation, each of which starts all of its kernels, some of them more than once."""
        return min(self.kernels.values())


_Operations = dict[tuple[int, str], _Total]
_Kernels = dict[tuple[str, str], _Total]
_Key = TypeVar("_Key")


class Compiled(NamedTuple):
    """What the compiled program says of an operation."""

    instruction: Instruction
    expression: str
    costs: Costs


@dataclass(frozen=True)
class GpuHost:
    """What the GPUs of a host did; ``started`` says which steps the start-up of the job takes, left out.

    ``facts`` are those of one GPU, ``total_time`` is of all, in picoseconds.
    """

    devices: int
    facts: Mapping[str, Value]
    operations: _Operations
    kernels: _Kernels
    compiled: Mapping[tuple[int, str], Compiled]
    steps: Mapping[int, StepRow]
    total_time: int
    started: str

    @property
    def hides_kernels(self) -> bool:
        """Whether compiled operations explain less than half of the time of the kernels."""
        explained = sum(total.time for key, total in self.operations.items() if key in self.compiled)
        return explained < sum(total.time for total in self.kernels.values()) / 2


def read_gpu(planes: Sequence[Plane]) -> GpuHost | None:
    """Read the GPUs of a host; None if only XProf can.

    Raises:
        ProfileError: the file is damaged.
    """
    gpus = [plane for plane in planes if plane.name.startswith(_DEVICE)]
    launches = read_launches(planes) if gpus and not has_groups_of_tensorflow(planes) else None
    if launches is None:
        return None
    marked, launches = len(launches.marks), launches.settled(planes, gpus)
    operations: _Operations = defaultdict(_Total)
    kernels: _Kernels = defaultdict(_Total)
    devices = [device for device in (_read(plane, operations, kernels) for plane in gpus) if device]
    try:
        compiled = dict(_compiled(operations, planes))
    except DAMAGED:
        return None
    known = [plane.stats for plane in gpus if plane.stats]
    return GpuHost(
        len(known),
        known[0] if known else {},
        operations,
        kernels,
        compiled,
        step_rows(launches, devices),
        sum(int(device.end.max() - device.start.min()) for device in devices),
        after_start_up(marked - len(launches.marks), marked),
    )


def convert_gpu(hosts: Sequence[GpuHost | None], memory: MemoryProfile) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them, and without a GPU.

    An operation counts as often as it ran, not as the kernels that it started.

    Args:
        hosts: all of a run.
        memory: of the first.
    """
    known = [host for host in hosts if host is not None]
    devices = sum(host.devices for host in known)
    if len(known) < len(hosts) or not devices:
        return None
    facts = next(host.facts for host in known if host.devices)
    peaks, warnings = peaks_of(facts)
    total_time = sum(host.total_time for host in known)
    compiled = {key: one for host in reversed(known) for key, one in host.compiled.items()}
    rows = tuple(_hlo_rows(_together([host.operations for host in known]), compiled, peaks, total_time))
    return Conversion(
        summary=Summary(device_type=model_of(facts), device_core_count=devices),
        steps=joined_steps([host.steps for host in known]),
        operations=rows,
        program=_program_row(rows, peaks, total_time),
        peaks=peaks,
        kernels=tuple(_kernel_rows(_together([host.kernels for host in known]))),
        memory=memory,
        warnings=warnings,
    )


def _together(hosts: Sequence[Mapping[_Key, _Total]]) -> dict[_Key, _Total]:
    totals: dict[_Key, _Total] = defaultdict(_Total)
    for key, total in (each for host in hosts for each in host.items()):
        totals[key].time += total.time
        for kernel, count in total.kernels.items():
            totals[key].kernels[kernel] += count
    return totals


def _read(plane: Plane, operations: _Operations, kernels: _Kernels) -> Events | None:
    """What a device did, if anything; its operations and kernels are added to those of the others."""
    streams = []
    for line in (line for line in plane.lines if line.name.startswith(STREAM) and not line.is_empty):
        events = line.events((_OPERATION, _PROGRAM, _KERNEL, _PATH, LAUNCH))
        operation, program, kernel, path, launch = map(events.column, (_OPERATION, _PROGRAM, _KERNEL, _PATH, LAUNCH))
        start = line.timestamp_ns * PS_PER_NS + events.offset
        copies = np.zeros((2, len(events)), dtype=np.bool_)
        order, lots = alike(events.metadata, operation.value, program.value, path.value, kernel.known)
        for rows in np.split(order, lots[1:]):
            row, time = rows[0], int(events.duration[rows].sum())
            name = plane.names.get(int(events.metadata[row]), "")
            copies[:, rows] = [[is_host_copy_event(name)], [name in _TO_DEVICE]]
            if kernel.known[row]:
                kernels[name, plane.text(int(path.value[row]))].add(name, len(rows), time)
            if ran := plane.text(int(operation.value[row])):
                operations[int(program.value[row]), ran.rpartition("::")[2]].add(name, len(rows), time)
        streams.append(Events(start, start + events.duration, launch.value, *copies))
    every = Events(*map(np.concatenate, zip(*streams, strict=True))) if streams else None
    return every if every and len(every.start) else None


def _compiled(
    operations: Iterable[tuple[int, str]], planes: Sequence[Plane]
) -> Iterator[tuple[tuple[int, str], Compiled]]:
    for key, instruction, around, program in instructions_of(operations, planes):
        yield key, Compiled(instruction, expression_of(instruction, around), costs_of(instruction, around, program))


def _hlo_rows(
    operations: _Operations, compiled: Mapping[tuple[int, str], Compiled], peaks: Peaks, total_time: int
) -> Iterator[HloRow]:
    """Longest first; what no compiled program holds is left out."""
    known = ((key, total) for key, total in operations.items() if key in compiled)
    for (number, name), total in sorted(known, key=lambda each: -each[1].time):
        instruction, expression, costs = compiled[number, name]
        seconds = total.time * PS
        each_second = total.occurrences / seconds if seconds else 0.0
        flop_rate, bandwidth = costs.flops * each_second / GIGA, costs.bytes * each_second / GIB
        bound, efficiency = _stand(flop_rate, bandwidth, peaks)
        yield HloRow(
            program_id=str(number & (1 << 64) - 1), category=category_of(instruction), hlo_op_name=name,
            hlo_op_expression=expression, kernels=tuple(total.kernels), tf_op_name=instruction.op_name,
            occurrences=total.occurrences, total_self_time=total.time * US_PER_PS,
            total_self_time_percent=100 * total.time / total_time if total_time else 0.0, model_flop_rate=flop_rate,
            hbm_bw=bandwidth, bound_by=bound, roofline_efficiency=efficiency, source_info=instruction.source,
        )  # fmt: skip


def _program_row(rows: Sequence[HloRow], peaks: Peaks, total_time: int) -> RooflineRow | None:
    """The operations together, in the time of all devices."""
    time = total_time * US_PER_PS
    if not rows or not time:
        return None
    flop_rate = sum(row.model_flop_rate * row.total_self_time for row in rows) / time
    bandwidth = sum(row.hbm_bw * row.total_self_time for row in rows) / time
    bound, efficiency = _stand(flop_rate, bandwidth, peaks)
    return RooflineRow(
        rank=0,
        operation="Program",
        total_time=time,
        hbm_operational_intensity=flop_rate * GIGA / (bandwidth * GIB) if bandwidth else None,
        bound_by=bound,
        roofline_efficiency=efficiency,
    )


def _stand(flop_rate: float, bandwidth: float, peaks: Peaks) -> tuple[str, float | None]:
    """What bounds an operation of these GFLOP/s and GiB/s: the roof that it uses more of, and how much of it."""
    compute = flop_rate / peaks.peak_flop_rate if peaks.peak_flop_rate else 0.0
    memory = bandwidth / peaks.peak_hbm_bw if peaks.peak_hbm_bw else 0.0
    if not compute and not memory:
        return "Unknown", None
    return ("Compute", compute) if compute > memory else ("HBM", memory)


def _kernel_rows(kernels: _Kernels) -> Iterator[KernelRow]:
    for (name, operation), total in sorted(kernels.items(), key=lambda each: -each[1].time):
        yield KernelRow(
            kernel_name=name, op_name=operation, occurrences=total.occurrences, total_duration_us=total.time * US_PER_PS
        )
