"""The tables of a GPU run of JAX, from the events of its streams and the compiled programs in the profile."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from asap.core.units import GIB
from asap.profiles.collectives import is_host_copy_event
from asap.profiles.cpu import PS, PS_PER_NS, has_groups_of_tensorflow, joined_steps, orderly_marks, read_marks
from asap.profiles.gpu.chip import model_of, peaks_of
from asap.profiles.gpu.steps import Events, step_rows
from asap.profiles.hlo.cost import category_of, costs_of, expression_of
from asap.profiles.hlo.program import DAMAGED, CompiledProgram
from asap.profiles.tpu.convert import memory_profile
from asap.profiles.xplane.columns import alike
from asap.profiles.xplane.planes import Plane
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import HloRow, KernelRow, Peaks, RooflineRow, Summary

_DEVICE, _METADATA, _STREAM = "/device:GPU:", "/host:metadata", "Stream #"
_OPERATION, _PROGRAM, _KERNEL, _PATH, _LAUNCH = "hlo_op", "program_id", "kernel_details", "name", "correlation_id"
_TO_DEVICE = ("MemcpyH2D", "CopyHostToDevice")
_PROTO = {"Hlo Proto", "hlo_proto"}
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


def convert_gpu(hosts: Sequence[Sequence[Plane]]) -> Conversion | None:
    """The tables that XProf would return, unrounded; None if only XProf can make them, and without a GPU.

    An operation counts as often as it ran, not as the kernels that it started.

    Raises:
        ProfileError: a file is damaged.
    """
    planes = [plane for host in hosts for plane in host if plane.name.startswith(_DEVICE) and plane.stats]
    if not planes or has_groups_of_tensorflow(hosts):
        return None
    operations: _Operations = defaultdict(_Total)
    kernels: _Kernels = defaultdict(_Total)
    steps, total_time = [], 0
    for number, host in enumerate(hosts):
        marks = orderly_marks(read_marks(host, number))
        if marks is None:
            return None
        read = (_read(plane, operations, kernels) for plane in host if plane.name.startswith(_DEVICE))
        devices = [device for device in read if device]
        total_time += sum(int(device.end.max() - device.start.min()) for device in devices)
        steps.append(step_rows(marks, host, devices))
    peaks, warnings = peaks_of(planes[0].stats)
    try:
        rows = tuple(_hlo_rows(operations, _programs(hosts), peaks, total_time))
    except DAMAGED:
        return None
    return Conversion(
        summary=Summary(device_type=model_of(planes[0].stats), device_core_count=len(planes)),
        steps=joined_steps(steps),
        operations=rows,
        program=_program_row(rows, peaks, total_time),
        peaks=peaks,
        kernels=tuple(_kernel_rows(kernels)),
        memory=memory_profile(hosts[0]),
        warnings=warnings,
    )


def _read(plane: Plane, operations: _Operations, kernels: _Kernels) -> Events | None:
    """What a device did, if anything; its operations and kernels are added to those of the others."""
    streams = []
    for line in (line for line in plane.lines if line.name.startswith(_STREAM) and not line.is_empty):
        events = line.events((_OPERATION, _PROGRAM, _KERNEL, _PATH, _LAUNCH))
        operation, program, kernel, path, launch = map(events.column, (_OPERATION, _PROGRAM, _KERNEL, _PATH, _LAUNCH))
        start = line.timestamp_ns * PS_PER_NS + events.offset
        copies = np.zeros((2, len(events)), dtype=np.bool_)
        for rows in alike(events.metadata, operation.value, program.value, path.value, kernel.known):
            row, time = rows[0], int(events.duration[rows].sum())
            name = plane.names.get(int(events.metadata[row]), "")
            copies[:, rows] = [[is_host_copy_event(name)], [name in _TO_DEVICE]]
            if kernel.known[row]:
                kernels[name, plane.text(int(path.value[row]))].add(name, len(rows), time)
            if ran := plane.text(int(operation.value[row])):
                operations[int(program.value[row]), ran.rpartition("::")[2]].add(name, len(rows), time)
        streams.append(Events(start, start + events.duration, launch.value, *copies))
    return Events(*map(np.concatenate, zip(*streams, strict=True))) if streams else None


def _programs(hosts: Sequence[Sequence[Plane]]) -> dict[int, CompiledProgram]:
    """Compiled programs by their number; of those that several hosts have by the same name, the first."""
    found: dict[int, CompiledProgram] = {}
    names: set[str] = set()
    for plane in (plane for host in hosts for plane in host if plane.name == _METADATA):
        for number in (number for number, name in plane.names.items() if name not in names):
            stats = plane.description(number).stats
            key = stats.get(_PROGRAM, number)
            proto = next((value for name, value in stats.items() if name in _PROTO), None)
            if isinstance(proto, bytes) and isinstance(key, int):
                found.setdefault(key, CompiledProgram(proto))
        names |= set(plane.names.values())
    return found


def _hlo_rows(
    operations: _Operations, programs: Mapping[int, CompiledProgram], peaks: Peaks, total_time: int
) -> Iterator[HloRow]:
    """Longest first; what no compiled program holds is left out."""
    for (number, name), total in sorted(operations.items(), key=lambda each: -each[1].time):
        program = programs.get(number)
        found = program.find(name) if program else None
        if program is None or found is None:
            continue
        instruction, around = found
        costs, seconds = costs_of(instruction, around, program), total.time * PS
        each_second = total.occurrences / seconds if seconds else 0.0
        flop_rate, bandwidth = costs.flops * each_second / GIGA, costs.bytes * each_second / GIB
        bound, efficiency = _stand(flop_rate, bandwidth, peaks)
        yield HloRow(
            program_id=str(number & (1 << 64) - 1),
            category=category_of(instruction),
            hlo_op_name=name,
            hlo_op_expression=expression_of(instruction, around),
            tf_op_name=instruction.op_name,
            occurrences=total.occurrences,
            total_self_time=total.time * US_PER_PS,
            total_self_time_percent=100 * total.time / total_time if total_time else 0.0,
            model_flop_rate=flop_rate,
            hbm_bw=bandwidth,
            bound_by=bound,
            roofline_efficiency=efficiency,
            source_info=instruction.source,
        )


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
            kernel_name=name,
            op_name=operation,
            occurrences=total.occurrences,
            total_duration_us=total.time * US_PER_PS,
        )
