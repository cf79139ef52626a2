"""Short phrases for facts and predictions, shared by the terminal and Markdown. Plain text, not escaped."""

import math

from asap.core.provenance import Provenance, Quantity
from asap.core.text import plain
from asap.core.units import GIB, format_bytes, format_percent, format_rate, format_seconds, significant
from asap.models import Architecture
from asap.prediction.prediction import Prediction
from asap.profiles import Gap, Kpis, Operation, Roofline
from asap.proposals import Proposal
from asap.reports.analysis import Analysis, ExperimentSummary

UNKNOWN = "unknown"
NAME_WIDTH = 48


def experiment_facts(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Label and value of what was analysed."""
    return [
        ("hardware", _hardware(experiment)),
        ("model", _model(experiment.model)),
        ("batch", _batch(experiment)),
        ("plan", str(experiment.plan) if experiment.plan else UNKNOWN),
        ("facts", _facts(experiment)),
    ]


def kpi_facts(kpis: Kpis) -> list[tuple[str, str]]:
    """Label and value of each KPI, unknown ones included."""
    return [
        ("step time", format_seconds(kpis.step_time_s) if kpis.step_time_s is not None else UNKNOWN),
        ("duty cycle", _share(kpis.duty_cycle)),
        ("communication", _share(kpis.communication)),
        ("idle", _share(kpis.idle)),
        ("input", _share(kpis.input)),
        ("goodput", _share(kpis.goodput)),
    ]


def operation_cells(operation: Operation) -> tuple[str, str, str, str]:
    """Share of the time, bound, roofline efficiency and name of an operation."""
    bound = "opaque" if operation.opaque else operation.bound
    efficiency = "" if operation.opaque else _share(operation.roofline_efficiency, "")
    return format_percent(operation.fraction, 2), bound, efficiency, operation.name


def operation_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile ops` lists it."""
    return (
        format_percent(operation.fraction, 2),
        format_seconds(operation.time_s) if operation.time_s is not None else "",
        f"{operation.occurrences:g}" if operation.occurrences is not None else "",
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
        ("peak HBM bandwidth", f"{bandwidth / GIB:.1f} GiB/s" if bandwidth else UNKNOWN),
        ("ridge point", f"{significant(roofline.ridge_point)} FLOP/byte" if roofline.ridge_point else UNKNOWN),
        ("bound", roofline.program_bound),
        ("efficiency", _share(roofline.program_efficiency)),
    ]


def roofline_row(operation: Operation) -> tuple[str, ...]:
    """An operation as `asap profile roofline` lists it."""
    share, bound, efficiency, name = operation_cells(operation)
    flops = format_rate(operation.flops, "FLOP") if operation.flops is not None else ""
    moved = format_bytes(operation.bytes_accessed) if operation.bytes_accessed is not None else ""
    return share, flops, moved, bound, efficiency, plain(name, NAME_WIDTH)


def relative_change(prediction: Prediction) -> str:
    """``-3.1 % (-45 to +70 %)``, or the absolute step time where there is nothing to compare with."""
    relative = prediction.relative_step_time
    if relative is None:
        return interval(prediction.step_time)
    text = f"{(relative.value - 1) * 100:+z.1f} %"
    if relative.low is not None and relative.high is not None:
        text += f" ({(relative.low - 1) * 100:+.0f} to {(relative.high - 1) * 100:+.0f} %)"
    return text


def interval(quantity: Quantity | None) -> str:
    """A time and its 90 % interval."""
    if quantity is None:
        return UNKNOWN
    text = format_seconds(quantity.value)
    if quantity.low is not None and quantity.high is not None:
        text += f" ({format_seconds(quantity.low)} to {format_seconds(quantity.high)})"
    return text


def memory_phrase(prediction: Prediction) -> str:
    """HBM against capacity, predicted unless it says that it was compiled."""
    memory = prediction.memory
    if memory is None:
        return UNKNOWN
    by_compiler = ", compiled" if memory.total.provenance is Provenance.COMPILED else ""
    return f"{format_bytes(memory.total.value)} of {format_bytes(memory.capacity_bytes)}{by_compiler}"


def compiled_before(analysis: Analysis) -> list[str]:
    """What the compiler said of the plan that ran."""
    said = analysis.incumbent and analysis.incumbent.compiled
    return [f"The plan that ran, compiled: {said}"] if said else []


def probability(quantity: Quantity | None) -> str:
    """A probability without false precision."""
    return UNKNOWN if quantity is None else f"{quantity.value:.0%}"


def missing(gaps: tuple[Gap, ...]) -> str:
    """What a profile does not tell, and the capture that would tell it."""
    captures = list(dict.fromkeys(gap.capture for gap in gaps if gap.capture))
    advice = f". Capture with {'; '.join(captures)}" if captures else ""
    return "; ".join(gap.what.rstrip(".") for gap in gaps) + advice + "."


def headline(analysis: Analysis) -> str:
    """``compute``, ``insufficient evidence`` …"""
    return analysis.diagnosis.bottleneck.value.replace("_", " ")


def answered_by(analysis: Analysis) -> str:
    """Who chose the proposals."""
    if analysis.answered_by == "engine":
        return f"the engine alone, as {analysis.agent_model} gave no answer"
    return f"agents on {analysis.agent_model}"


def agents_words(proposal: Proposal) -> list[str]:
    """What an agent wrote for a proposal, with both ranks and the predicted regret."""
    if proposal.prose is None:
        return []
    regret = f", predicted regret {format_percent(math.expm1(proposal.regret.value))}" if proposal.regret else ""
    return [f"The agent: {proposal.prose} (its rank {proposal.rank}, the engine's {proposal.engine_rank}{regret})"]


def _hardware(experiment: ExperimentSummary) -> str:
    hardware = experiment.hardware
    shape = "x".join(map(str, hardware.topology)) if hardware.topology else None
    names = [name for name in (hardware.name or hardware.chip, shape) if name]
    if hardware.slices > 1:
        names.append(f"{hardware.slices} slices")
    if experiment.devices:
        names.append(f"{experiment.devices} device{'s' if experiment.devices > 1 else ''}")
    return ", ".join(names) or UNKNOWN


def _model(model: Architecture | None) -> str:
    if model is None:
        return UNKNOWN
    shapes = [f"{model.layers} layers"] if model.layers else []
    shapes += [f"width {model.d_model}"] if model.d_model else []
    shapes += [f"{model.experts} experts"] if model.experts else []
    return ", ".join([model.name or "unnamed", *shapes])


def _batch(experiment: ExperimentSummary) -> str:
    workload = experiment.workload
    batch = f"{workload.global_batch} sequences" if workload.global_batch else "unknown number of sequences"
    length = f"{workload.sequence_length} tokens" if workload.sequence_length else "unknown length"
    return f"{batch} of {length}"


def _facts(experiment: ExperimentSummary) -> str:
    if experiment.profile is None:
        return "no profile"
    return f"{'stated by' if experiment.stated else 'measured,'} {experiment.profile}"


def _share(fraction: float | None, unknown: str = UNKNOWN) -> str:
    return unknown if fraction is None else format_percent(fraction)
