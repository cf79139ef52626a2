"""What was analysed, its flags and its profile, in short plain phrases. Plain text, not escaped."""

from collections.abc import Iterable

from asap.core.text import plain
from asap.core.units import counted, exact, format_bytes, format_percent, format_rate, format_seconds, significant
from asap.experiments import HardwareReference
from asap.flags import FlagAdvice, FlagReview
from asap.models import Architecture, Workload, count_parameters
from asap.profiles import Kpis, Operation, Roofline
from asap.profiles.profile import Total
from asap.reports.analysis import ExperimentSummary
from asap.reports.phrases import UNKNOWN, amount, resource_name
from asap.study.start import ASSUMED


def experiment_facts(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Label and value of what was analysed."""
    return [
        ("hardware", describe_hardware(experiment.hardware, experiment.devices)),
        ("model", describe_model(experiment.model)),
        ("batch", batch_size(experiment.workload)),
        ("plan", _plan(experiment)),
        ("profile", _origin(experiment)),
    ]


def _plan(experiment: ExperimentSummary) -> str:
    if experiment.plan is None:
        return UNKNOWN
    return f"{experiment.plan}, {ASSUMED}" if experiment.provenance.get("plan") == ASSUMED else str(experiment.plan)


def describe_hardware(hardware: HardwareReference, devices: int | None) -> str:
    """``v5p-512, 8x8x4, 256 devices``; with the network between nodes where that was stated."""
    shape = "x".join(map(str, hardware.topology)) if hardware.topology else None
    names = [name for name in (hardware.name or hardware.chip, shape) if name]
    if hardware.slices > 1:
        names.append(f"{hardware.slices} slices")
    if devices:
        names.append(counted(devices, "device"))
    if hardware.node and devices and devices > hardware.node:
        names.append(f"{devices // hardware.node} nodes of {hardware.node}")
    if hardware.network:
        names.append(f"{format_rate(hardware.network, 'B/s')} a device between nodes")
    return ", ".join(names) or UNKNOWN


def describe_model(model: Architecture | None) -> str:
    """``mixtral-8x7b, 46.7 B parameters, 12.9 B active, 32 layers, width 4096, 8 experts, 2 a token``."""
    if model is None:
        return UNKNOWN
    shapes = [f"{model.layers} layers"] if model.layers else []
    shapes += [f"width {model.d_model}"] if model.d_model else []
    shapes += [f"{model.experts} experts, {model.experts_per_token} a token"] if model.experts else []
    size = None if model.missing() else count_parameters(model)
    sizes = [f"{amount(size.total, 'parameters')} parameters"] if size else []
    sizes += [f"{amount(size.active, 'parameters')} active"] if size and model.is_moe else []
    return ", ".join([model.name or "unnamed", *sizes, *shapes])


def batch_size(workload: Workload) -> str:
    """``256 sequences of 8,192 tokens``, of what is known; ``unknown`` of neither."""
    if not workload.global_batch and not workload.sequence_length:
        return UNKNOWN
    batch = counted(workload.global_batch, "sequence") if workload.global_batch else "sequences"
    return f"{batch} of {workload.sequence_length:,} tokens" if workload.sequence_length else batch


def _origin(experiment: ExperimentSummary) -> str:
    if experiment.profile is None:
        return "none"
    return f"{'stated by' if experiment.stated else 'measured,'} {experiment.profile}"


_MOST_NAMES = 3


def flag_sentences(review: FlagReview) -> list[str]:
    """What is missing and what does harm, each with its reason and source; empty if there is nothing to say."""
    lead = "Missing" if review.on_record else "Not on record whether it is set"
    unwise = [
        f"{advice.kind.capitalize()}: {advice.title}: {advice.reason} ({advice.source})." for advice in review.unwise
    ]
    compiled = [f"Compiled: {review.compiled}"] if review.compiled else []
    return unwise + compiled + [f"{lead}: {_missing(advice)} ({advice.source})." for advice in review.missing]


def flag_summary(review: FlagReview) -> str:
    """The flags that are set, and which of them the tables do not know."""
    if not review.on_record:
        return "none on record"
    unknown = [flag.name for flag in review.set if flag.purpose is None]
    summary = f"{len(review.set)} set: {listed([f'{flag.name}={flag.value}' for flag in review.set])}"
    return f"{summary}; not judged: {listed(unknown)}" if unknown else summary


def _missing(advice: FlagAdvice) -> str:
    return f"{advice.title} ({listed(list(advice.flags))}): {advice.reason}"


def listed(names: list[str], most: int = _MOST_NAMES) -> str:
    """The first names, and how many there are besides."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


NAME_WIDTH = 48


def kpi_facts(kpis: Kpis) -> list[tuple[str, str]]:
    """Label and value of each KPI that is known."""
    found = [
        ("step time", format_seconds(kpis.step_time_s) if kpis.step_time_s is not None else UNKNOWN),
        ("duty cycle", _share(kpis.duty_cycle)),
        ("communication", _share(kpis.communication)),
        ("idle", _share(kpis.idle)),
        ("input", _share(kpis.input)),
        ("goodput", _share(kpis.goodput)),
    ]
    return [(label, value) for label, value in found if value != UNKNOWN]


def operation_cells(operation: Operation) -> tuple[str, str, str, str]:
    """Share of the time, bound, roofline efficiency and name of an operation."""
    bound = "opaque" if operation.opaque else resource_name(operation.bound)
    efficiency = "" if operation.opaque else _share(operation.roofline_efficiency, "")
    return format_percent(operation.fraction, 2), bound, efficiency, operation.name


def operation_columns(extent: str) -> tuple[str, ...]:
    """Names of the columns of :func:`operation_row`."""
    times = ("time", f"per {extent}", "times")
    return (*times, "FLOP util.", "HBM", "category", "operation", "shape", "source")


def operation_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile ops` lists it."""
    return (
        format_percent(operation.fraction, 2),
        format_seconds(operation.time_s) if operation.time_s is not None else "",
        exact(operation.occurrences) if operation.occurrences is not None else "",
        _share(operation.flop_utilisation, ""),
        format_rate(operation.memory_bandwidth, "B/s") if operation.memory_bandwidth is not None else "",
        operation.category,
        plain(operation.name, NAME_WIDTH),
        plain(operation.shape or "", NAME_WIDTH),
        operation.source or "",
    )


def roofline_facts(roofline: Roofline) -> list[tuple[str, str]]:
    """The roof and the program under it."""
    flops, bandwidth = roofline.peak_flop_rate, roofline.peak_hbm_bandwidth
    return [
        ("peak FLOP rate", format_rate(flops, "FLOP/s") if flops else UNKNOWN),
        ("peak HBM bandwidth", format_rate(bandwidth, "B/s") if bandwidth else UNKNOWN),
        ("ridge point", f"{significant(roofline.ridge_point)} FLOP/byte" if roofline.ridge_point else UNKNOWN),
        ("bound", roofline.program_bound),
        ("efficiency", _share(roofline.program_efficiency)),
    ]


def roofline_columns(extent: str) -> tuple[str, ...]:
    """Names of the columns of :func:`roofline_row`."""
    return "time", "saves at most", f"FLOPs per {extent}", f"bytes per {extent}", "bound", "of roofline", "operation"


def roofline_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile roofline` lists it."""
    share, bound, efficiency, name = operation_cells(operation)
    flops = format_rate(operation.flops, "FLOP") if operation.flops is not None else ""
    moved = format_bytes(operation.bytes_accessed) if operation.bytes_accessed is not None else ""
    saves = format_percent(operation.recoverable, 2) if operation.recoverable is not None else ""
    return share, saves, flops, moved, bound, efficiency, plain(name, NAME_WIDTH)


def by_recoverable(operations: Iterable[Operation]) -> list[Operation]:
    """Operations by what they would save on the roofline, the most first; then those whose efficiency is not known."""
    return sorted(operations, key=lambda one: -1.0 if one.recoverable is None else one.recoverable, reverse=True)


def total_rows(totals: Iterable[Total], seconds: float | None, most: int) -> list[tuple[str, str, str]]:
    """Share and time of each sort of operations, the first ones; ``seconds`` is what a share of one takes."""
    return [
        (format_percent(one.fraction, 2), format_seconds(one.fraction * seconds) if seconds else "", one.name)
        for one in list(totals)[:most]
    ]


def _share(fraction: float | None, unknown: str = UNKNOWN) -> str:
    return unknown if fraction is None else format_percent(fraction)
