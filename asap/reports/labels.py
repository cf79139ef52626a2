"""What was analysed and its flags, in short plain phrases. Plain text, not escaped."""

from asap.core.units import counted, format_rate
from asap.experiments import HardwareReference
from asap.flags import FlagAdvice, FlagReview
from asap.models import Architecture, Workload, count_parameters
from asap.reports.analysis import ExperimentSummary
from asap.reports.phrases import amount
from asap.reports.profile_facts import UNKNOWN
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


def name_or_size(model: Architecture | None) -> str | None:
    """``mixtral-8x7b``, or ``175 B parameters`` where a model has no name."""
    if model is not None and not model.name and not model.missing():
        return f"{amount(count_parameters(model).total, 'parameters')} parameters"
    return model and model.name


def batch_size(workload: Workload) -> str:
    """``256 sequences of 8,192 tokens, LoRA of rank 8``, of what is known; ``unknown`` of neither."""
    if not workload.global_batch and not workload.sequence_length:
        return UNKNOWN
    batch = counted(workload.global_batch, "sequence") if workload.global_batch else "sequences"
    batch += f" of {workload.sequence_length:,} tokens" if workload.sequence_length else ""
    return batch + (f", LoRA of rank {workload.adapter_rank}" if workload.adapter_rank else "")


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
    return unwise + [f"{lead}: {_missing(advice)} ({advice.source})." for advice in review.missing]


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
