"""The step time of a record from what its log measured, also where the log has rates and the record the sizes."""

from asap.experiments.experiment import Experiment
from asap.experiments.logs.reading import LogReading
from asap.experiments.logs.settings import LogSettings
from asap.experiments.observed import MeasuredStep

_AGREES = 1.25
"""Times that a rate and a time of the same steps may differ by: rates are rounded, and some leave out padding."""


def disagreement(reading: LogReading, settings: LogSettings) -> str | None:
    """What the log prints of a step's time and rate, where these cannot both hold with its batch and devices."""
    step, rate = reading.measured.step.median, reading.measured.tokens_per_second_per_device
    if not (step and rate and settings.global_batch and settings.sequence and settings.devices):
        return None
    tokens = settings.global_batch * settings.sequence / settings.devices
    if 1 / _AGREES <= tokens / step / rate <= _AGREES:
        return None
    return (
        f"{tokens:,.0f} tokens of a device in {step:.3g} s are {tokens / step:,.0f} a second, and it prints {rate:,.0f}"
    )


def measured_step(reading: LogReading, settings: LogSettings, experiment: Experiment) -> MeasuredStep | None:
    """The median step; of a log that has tokens a second alone, by the tokens of the record; ``None`` if neither."""
    step, rate = reading.measured.step, reading.measured.tokens_per_second_per_device
    if step.median is not None:
        return MeasuredStep(
            seconds=step.median,
            least=step.least,
            most=step.most,
            deviation=step.deviation,
            steps=step.steps or None,
            left_out=step.left_out,
            tokens_per_device=rate * step.median if rate else None,
            source=reading.file,
        )
    tokens, devices = experiment.workload.tokens, experiment.hardware.devices or settings.devices
    if rate is None or tokens is None or devices is None:
        return None
    return MeasuredStep(
        seconds=tokens / devices / rate, tokens_per_device=tokens / devices, source=f"{reading.file}: tokens a second"
    )
