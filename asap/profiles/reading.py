"""Read a run: make its tables once, and put together the facts that its device and its capture allow.

The tables are made from the events and the compiled programs; XProf makes those that hold something unfamiliar.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.core.units import format_bytes
from asap.profiles import kpis
from asap.profiles.host_time import mean_of_hosts
from asap.profiles.hosts import Host, made_from, read_hosts
from asap.profiles.kpis import Busy, gpu_busy, kpis_from, tpu_busy
from asap.profiles.operations import (
    US,
    Scale,
    Steps,
    bound_of,
    cpu_operations,
    hlo_operations,
    host_copy_operations,
    kernel_operations,
    longest_first,
    marked_steps,
    module_steps,
    si_peaks,
)  # fmt: skip
from asap.profiles.profile import Extent, Gap, Operation, Profile, ProfileRun, Roofline
from asap.profiles.totals import Totals
from asap.profiles.xprof.converter import Conversion, convert
from asap.profiles.xprof.tables import RooflineRow


@dataclass(frozen=True)
class _Facts:
    """What is read in another way for each kind of device."""

    devices: int
    operations: tuple[Operation, ...] = ()
    extent: Extent = "window"
    busy: Busy = field(default_factory=Busy)
    names: tuple[str, ...] = ()
    modules: Mapping[str, Sequence[float]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = (kpis.OPERATIONS,)


def read_run(run: ProfileRun, progress: Callable[[str], None]) -> Profile:
    """All facts of a run.

    Raises:
        ProfileError: it cannot be read.
    """
    hosts, conversion = _tables(run, progress)
    missing = kpis.HLO
    if conversion.hides_kernels:
        missing, conversion = kpis.CUDA_GRAPHS, replace(conversion, operations=(), program=None)
    marked = marked_steps(conversion.summary, conversion.steps)
    totals = Totals()
    for host in hosts:
        totals.add(host.totals)
    if program := conversion.program:
        facts = _from_tables(conversion, program, totals, marked)
    elif conversion.kernels and totals.active:
        facts = _from_kernels(conversion, totals, marked, missing)
    elif totals.devices:
        facts = _Facts(totals.devices)
    else:
        facts = _from_cpu(totals, marked)
    profile = _profile(run, conversion, totals, facts, marked)
    warnings = (*profile.warnings, *dict.fromkeys(host.started for host in hosts if host.started))
    return profile.model_copy(update={"host": mean_of_hosts(host.waits for host in hosts), "warnings": warnings})


def _tables(run: ProfileRun, progress: Callable[[str], None]) -> tuple[list[Host], Conversion]:
    """What each host did, and the tables. What damages a file XProf says better."""
    what = f"{format_bytes(run.size)} of {len(run.files)} host{'s' if len(run.files) > 1 else ''}"
    progress(f"reading {what}")
    try:
        hosts = read_hosts(run.files)
    except ProfileError:
        convert(run.files)
        raise
    conversion = made_from(hosts)
    if conversion is None:
        progress(f"converting {what} with XProf")
        conversion = convert(run.files)
    progress("reading operations")
    return hosts, conversion


def _from_tables(conversion: Conversion, program: RooflineRow, totals: Totals, marked: Steps | None) -> _Facts:
    summary = conversion.summary
    devices = totals.active or max(int(summary.device_core_count), 1)
    scale = Scale(devices, program.total_time * US / devices, marked)
    operations = hlo_operations(conversion, scale)
    on_tpu = summary.kind == "tpu"
    return _Facts(
        devices,
        operations,
        scale.extent,
        busy=tpu_busy(summary, operations, marked) if on_tpu else gpu_busy(conversion.steps, operations),
        names=tuple(row.tf_op_name for row in conversion.operations),
        modules={} if marked else totals.modules,
        gaps=(),
    )


def _from_kernels(conversion: Conversion, totals: Totals, marked: Steps | None, missing: Gap) -> _Facts:
    scale = Scale(totals.active, totals.windows_s / totals.active, marked)
    kernels = kernel_operations(conversion.kernels, scale)
    operations = longest_first((*kernels, *host_copy_operations(totals.copies, scale)))
    return _Facts(
        totals.active,
        operations,
        scale.extent,
        busy=gpu_busy(conversion.steps, operations),
        names=tuple(row.op_name for row in conversion.kernels),
        gaps=(missing,),
    )


def _from_cpu(events: Totals, marked: Steps | None) -> _Facts:
    if not events.virtual:
        return _Facts(0)
    scale = Scale(events.virtual, events.windows_s / events.virtual, marked)
    duty_cycle = events.busy_s / events.windows_s if events.windows_s else None
    return _Facts(
        events.virtual,
        cpu_operations(events.operations, scale),
        scale.extent,
        busy=Busy(duty_cycle=duty_cycle, idle=None if duty_cycle is None else 1.0 - duty_cycle),
        names=tuple(instruction.module for instruction in events.operations),
        modules=events.modules,
        gaps=(kpis.COSTS,),
    )


def _profile(run: ProfileRun, conversion: Conversion, totals: Totals, facts: _Facts, marked: Steps | None) -> Profile:
    module = None if marked else module_steps(facts.modules, facts.devices)
    used, capacity = conversion.memory.fullest or (None, None)
    unmarked = () if marked else (kpis.STEP_MARKERS,)
    no_memory = (kpis.MEMORY,) if totals.devices and used is None else ()
    return Profile(
        source=plain(run.path), extent=facts.extent, framework="xla",
        device_type=conversion.summary.device_type or None if facts.devices else None, devices=facts.devices or None,
        hosts=len(run.files), kpis=kpis_from(module[1] if module else marked, facts.busy, facts.operations),
        operations=facts.operations, roofline=_roofline(conversion), peak_hbm_bytes=used, hbm_capacity_bytes=capacity,
        gaps=(*facts.gaps, *unmarked, *no_memory),
        warnings=(*run.warnings, *conversion.warnings, *_warnings(conversion, totals, facts, marked, module)),
    )  # fmt: skip


def _roofline(conversion: Conversion) -> Roofline:
    peak_flop_rate, peak_bandwidth = si_peaks(conversion.peaks)
    program = conversion.program
    return Roofline(
        peak_flop_rate=peak_flop_rate, peak_hbm_bandwidth=peak_bandwidth,
        ridge_point=conversion.peaks.hbm_ridge_point or None,
        operational_intensity=program.hbm_operational_intensity if program else None,
        program_bound=bound_of(program.bound_by) if program else "unknown",
        program_efficiency=program.roofline_efficiency if program else None,
    )  # fmt: skip


def _warnings(
    conversion: Conversion, totals: Totals, facts: _Facts, marked: Steps | None, module: tuple[str, Steps] | None
) -> list[str]:
    warnings = []
    if not totals.recorded_hosts:
        warnings.append(kpis.NO_HOST)
    if module:
        warnings.append(kpis.module_as_step(module[0], module[1].count))
    if 0 < totals.active < totals.devices:
        warnings.append(kpis.some_devices(totals.active, totals.devices))
    if facts.operations and not marked and not kpis.looks_like_training(facts.names):
        warnings.append(kpis.NOT_TRAINING)
    if conversion.summary.kind == "gpu" and any(op.is_collective or op.host_copy for op in facts.operations):
        warnings.append(kpis.OVERLAP)
    return warnings
