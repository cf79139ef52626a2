"""Measurements against the record: what cannot be of this run is refused, what is doubtful is said."""

from asap.core.errors import ConfigError, InsufficientEvidenceError
from asap.core.text import plain
from asap.core.units import exact, format_bytes, format_percent, format_rate, format_seconds
from asap.experiments import Experiment
from asap.experiments.observed import MeasuredStep
from asap.hardware import Slice, find_chip
from asap.models.parameters import least_training_flops
from asap.profiles import Kpis, Profile

_ROUNDING = 1.02
"""Figures of a profile are rounded; what is two percent above a limit need not be above it."""
_SMALL_MEMORY = 0.5
_SINGLE_HOST = 8
"""Chips that the largest hosts have: a profile of one host shows all devices of a job of so many."""
_TOKENS_OFF = 0.05
_MFU_OFF = 0.05
"""Attention counted whole adds more than that from 8,000 tokens on; less is rounding."""
_DIFFERS = 0.1
_LEAST, _MOST = 0.5, 4.0
"""Counted over needed FLOPs: recomputation adds a third at most, and attention that does not skip the mask a half."""
_HIDDEN = 0.2
_POSSIBLE_MFU = 0.7
"""About the most that was ever published (:data:`asap.evidence.judgement.HIGHEST_PUBLISHED_MFU`)."""


def stated_profile(measured: MeasuredStep) -> Profile:
    """The facts of a run of which a step time is all that was measured."""
    kpis = Kpis(
        step_time_s=measured.seconds,
        step_time_min_s=measured.least,
        step_time_max_s=measured.most,
        step_time_stddev_s=measured.deviation,
        steps=measured.steps,
    )
    source = f"{measured.source}: {measured}" if measured.steps else measured.source
    return Profile(source=source, stated=True, kpis=kpis)


def check_measurements(experiment: Experiment, profile: Profile | None, hardware: Slice | None) -> tuple[str, ...]:
    """What a reader should doubt.

    Raises:
        ConfigError: the measurement is of another chip, of more devices, or faster or larger than the hardware allows.
    """
    if profile is None:
        return ()
    doubts = _check_steps(profile, experiment)
    if hardware is not None:
        doubts += _check_chip(profile, hardware, experiment.id) + _check_devices(profile, hardware, experiment.id)
        doubts += _check_memory(profile, hardware, experiment.id) + _check_speed(profile, hardware, experiment)
        doubts += _check_mfu(profile, hardware, experiment)
    return tuple(doubts + _check_collectives(profile, experiment) + _check_tokens(experiment, hardware))


def _check_steps(profile: Profile, experiment: Experiment) -> list[str]:
    kpis, doubts = profile.kpis, []
    if kpis.step_time_s is not None and kpis.step_time_s <= 0:
        raise ConfigError("the profile has steps that take no time", where=f"profile of {experiment.id}")
    if kpis.steps == 0:
        doubts.append("The profile holds no whole step: its times are of a window, not of a training step.")
    said = experiment.measured
    if said is not None and kpis.step_time_s and abs(said.seconds / kpis.step_time_s - 1) > _DIFFERS:
        both = f"{format_seconds(kpis.step_time_s)} in the profile and {format_seconds(said.seconds)} as stated"
        doubts.append(f"The step takes {both}: the profile counts, and one of them may be of another run.")
    return doubts


def _check_chip(profile: Profile, hardware: Slice, id: str) -> list[str]:
    named = find_chip(profile.device_type) if profile.device_type else None
    if named is not None and not named.chip.is_called_like(hardware.chip):
        raise ConfigError(
            f"is of {named.chip.title}, and the record says {hardware.chip.title}",
            where=f"profile of {id}", hint="correct --hardware, or give the profile of this run",
        )  # fmt: skip
    return []


def _check_devices(profile: Profile, hardware: Slice, id: str) -> list[str]:
    shown = profile.devices
    if shown is None or profile.stated:
        return []
    if shown > hardware.devices:
        raise ConfigError(
            f"shows {shown} devices, and the record has {hardware.devices}",
            where=f"profile of {id}", hint="correct --hardware, or give the profile of this run",
        )  # fmt: skip
    if shown < hardware.devices <= _SINGLE_HOST:
        return [f"The profile shows {shown} of {hardware.devices} devices: it may be of another run."]
    return []


def _check_memory(profile: Profile, hardware: Slice, id: str) -> list[str]:
    capacity = hardware.chip.hbm_bytes / hardware.chip.devices
    doubts = []
    for what, size in (("use", profile.peak_hbm_bytes), ("capacity", profile.hbm_capacity_bytes)):
        if size is not None and size > _ROUNDING * capacity:
            reason = f"shows an HBM {what} of {format_bytes(size)}; a device of {hardware.chip.title} has"
            raise ConfigError(f"{reason} {format_bytes(capacity)}", where=f"profile of {id}")
    shown = profile.hbm_capacity_bytes
    if shown is not None and shown < _SMALL_MEMORY * capacity:
        sizes = f"{format_bytes(shown)} of memory, and {hardware.chip.title} has {format_bytes(capacity)}"
        doubts.append(f"The devices of the profile have {sizes}: it may be of another chip.")
    return doubts


def _check_speed(profile: Profile, hardware: Slice, experiment: Experiment) -> list[str]:
    """Refuse a step in which not even the products with the weights could be computed: an MFU above 100 %."""
    seconds, flops, mfu = profile.kpis.step_time_s, _least_flops(experiment), _mfu(profile, hardware, experiment)
    if not seconds or flops is None or mfu is None:
        return []
    if mfu > _ROUNDING:
        taken = f"a step of {format_seconds(seconds)} would be an MFU of {format_percent(mfu, 0)}"
        correct = "correct model, batch, sequence or hardware, or give the measurement of this run"
        raise ConfigError(
            f"{taken} for this model and batch: it is of another run", where=f"measured step of {experiment.id}",
            hint=correct + _fitting(experiment, mfu),
        )  # fmt: skip
    return _check_flops(profile, flops / hardware.devices)


def _mfu(profile: Profile, hardware: Slice, experiment: Experiment) -> float | None:
    """Of the measured step, at the peak of the precision of products, else at the highest."""
    seconds, flops = profile.kpis.step_time_s, _least_flops(experiment)
    if not seconds or flops is None:
        return None
    peaks = hardware.chip.peak_flops
    return flops / (hardware.chips * peaks.get(experiment.workload.precision or "", max(peaks.values()))) / seconds


def _check_mfu(profile: Profile, hardware: Slice, experiment: Experiment) -> list[str]:
    """The MFU that a log counts beside the one of these pages, where they differ."""
    observed, ours = experiment.observed, _mfu(profile, hardware, experiment)
    theirs = observed.measured.mfu if observed else None
    if ours is None or theirs is None or abs(theirs / ours - 1) <= _MFU_OFF:
        return []
    peak = experiment.workload.precision or "its fastest products"
    counted = f"forward and backward pass, causal attention by half, over the peak of {peak}"
    return [f"The log counts an MFU of {format_percent(theirs)}; here it is {format_percent(ours)} ({counted})."]


def _fitting(experiment: Experiment, mfu: float) -> str:
    """The sequence that would make a measurement possible, halved until it does."""
    length, halved = experiment.workload.sequence_length or 0, 1
    while mfu / halved > _POSSIBLE_MFU:
        halved *= 2
    if not length or length % halved:
        return ""
    return f"; sequences of {length // halved:,} tokens would make it {format_percent(mfu / halved, 0)}"


def _check_flops(profile: Profile, needed: float) -> list[str]:
    """Whether a device computes in a step about what model and batch need; opaque operations hide what they do."""
    found = sum(operation.flops or 0.0 for operation in profile.operations)
    found /= (profile.kpis.steps or 1) if profile.extent == "window" else 1
    hidden = sum(operation.fraction for operation in profile.operations if operation.opaque)
    if profile.stated or not found or not (found > _MOST * needed or (found < _LEAST * needed and hidden < _HIDDEN)):
        return []
    both = f"{format_rate(found, 'FLOP')} a step and device; this model and batch need {format_rate(needed, 'FLOP')}"
    return [f"The profile counts {both}: it may be of another model, batch or plan."]


def _least_flops(experiment: Experiment) -> float | None:
    """FLOPs of a step that no layout avoids."""
    tokens, model, length = experiment.workload.tokens, experiment.model, experiment.workload.sequence_length
    if tokens is None or model is None or length is None:
        return None
    try:
        return least_training_flops(model, length) * tokens
    except InsufficientEvidenceError:
        return None


def _check_collectives(profile: Profile, experiment: Experiment) -> list[str]:
    plan = experiment.plan
    if plan is None or profile.stated or not profile.operations:
        return []
    shown = any(operation.is_collective for operation in profile.operations)
    if plan.devices > 1 and not shown:
        return [f"The profile shows no collectives, and the plan has {plan.devices} devices: it may be of another run."]
    if plan.devices == 1 and shown:
        return ["The profile shows collectives, and the plan has one device: it may be of another run."]
    return []


def _check_tokens(experiment: Experiment, hardware: Slice | None) -> list[str]:
    measured, tokens = experiment.measured, experiment.workload.tokens
    if measured is None or measured.tokens_per_device is None or tokens is None or hardware is None:
        return []
    expected = tokens / hardware.devices
    if abs(measured.tokens_per_device / expected - 1) <= _TOKENS_OFF:
        return []
    log, record = (exact(round(one)) for one in (measured.tokens_per_device, expected))
    counts = f"{log} tokens per device and step; the record's batch makes {record}"
    return [f"The log {plain(measured.source, 60)} has {counts}: it may be of another run."]
