"""What was analysed, in short plain phrases: hardware, model, batch, plan."""

from asap.core.units import format_rate
from asap.experiments import HardwareReference
from asap.models import Architecture
from asap.reports.analysis import ExperimentSummary
from asap.reports.phrases import UNKNOWN
from asap.study.start import ASSUMED


def experiment_facts(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Label and value of what was analysed."""
    return [
        ("hardware", describe_hardware(experiment.hardware, experiment.devices)),
        ("model", describe_model(experiment.model)),
        ("batch", _batch(experiment)),
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
        names.append(f"{devices} device{'s' if devices > 1 else ''}")
    if hardware.node and devices and devices > hardware.node:
        names.append(f"{devices // hardware.node} nodes of {hardware.node}")
    if hardware.network:
        names.append(f"{format_rate(hardware.network, 'B/s')} a device between nodes")
    return ", ".join(names) or UNKNOWN


def describe_model(model: Architecture | None) -> str:
    """``llama3.1-70b, 80 layers, width 8192``."""
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


def _origin(experiment: ExperimentSummary) -> str:
    if experiment.profile is None:
        return "none"
    return f"{'stated by' if experiment.stated else 'measured,'} {experiment.profile}"
