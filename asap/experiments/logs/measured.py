"""What was measured in a run: steady steps, rates, memory; of a log that is still written, step by step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from asap.core.units import format_seconds
from asap.experiments.experiment import Experiment
from asap.experiments.logs.formats import Form, steps
from asap.experiments.logs.reading import LogReading
from asap.experiments.logs.settings import LogSettings
from asap.experiments.logs.text import clean, is_training_bar, number
from asap.experiments.observed import FEWEST, Measured, MeasuredStep, steady_count, step_times

StepLine = tuple[Form, dict[str, str], int, int]


@dataclass(frozen=True)
class Sizes:
    """What turns a rate into the time of a step, where it is known: tokens, sequences, devices, accumulation."""

    tokens: float | None = None
    sequences: float | None = None
    devices: int | None = None
    accumulation: int | None = None

    def seconds(self, fields: dict[str, str]) -> float | None:
        """The time of a step from the fields of its line, the most exact one first."""
        own = self.tokens / self.devices if self.tokens and self.devices else None
        times = {"seconds": 1.0, "milliseconds": 1e-3, "seconds_each": 1.0}
        times["milliseconds_of_iteration"] = 1e-3 * (self.accumulation or 0)
        amounts = {"tokens_per_second_per_device": own, "samples_per_second": self.sequences, "steps_per_second": 1.0}
        for name, unit in times.items():
            if unit and name in fields and (value := number(fields[name])):
                return value * unit
        for name, amount in amounts.items():
            if amount and name in fields and (value := number(fields[name])):
                return amount / value
        return None


def measured(lines: Sequence[StepLine], totals: Sequence[StepLine], sizes: Sizes) -> Measured:
    """Everything that is measured in the lines of one run."""
    unique = _each_once(_of_one_form(_gathered(lines), sizes))
    times = [(step_index(fields), seconds) for _, fields, *_ in unique if (seconds := sizes.seconds(fields))]
    whole = [seconds for _, fields, *_ in totals if (seconds := sizes.seconds(fields))]
    if whole and (not times or (unique[0][0].bar and steady_count(times) < FEWEST)):
        times = [(None, whole[-1])]
    steady = unique[len(unique) - steady_count(times) :] if len(times) > 1 else unique[1:] or unique
    return Measured(
        step=step_times(times),
        tokens_per_second_per_device=_middle(steady, "tokens_per_second_per_device"),
        tokens_per_second=_middle(steady, "tokens_per_second"),
        samples_per_second=_middle(steady, "samples_per_second") or _last(totals, "samples_per_second"),
        tflops_per_device=_middle(steady, "tflops_per_device"),
        mfu=_middle(steady, "mfu") or 0.01 * (_middle(steady, "mfu_percent") or 0) or None,
        peak_memory_bytes=_peak(
            [*lines, *totals], memory_gib=2**30, memory_mib=2**20, memory_gb=1e9, memory_mb=1e6, memory_bytes=1
        ),
        reserved_memory_bytes=_peak(totals, reserved_mib=2**20, reserved_gb=1e9),
        compiled_memory_bytes=_peak(totals, compiled_gib=2**30),
    )


def _of_one_form(lines: list[StepLine], sizes: Sizes) -> list[StepLine]:
    """The lines of the form that says times most exactly; a progress bar counts where nothing else does."""
    by_form: dict[tuple[bytes, str], list[StepLine]] = {}
    for one in lines:
        of_bar = (b"bar", one[1].get("total_steps", ""))
        by_form.setdefault(of_bar if one[0].bar else (one[0].anchor, ""), []).append(one)

    def worth(found: list[StepLine]) -> tuple[bool, bool, bool, float]:
        form, fields = found[-1][0], found[-1][1]
        seconds = sizes.seconds(fields)
        direct = bool(fields.keys() & {"seconds", "milliseconds"})
        whole = (number(fields.get("total_steps", "")) or 0) * (seconds or 0) if form.bar else len(found)
        return seconds is not None, not form.bar, direct, whole

    return max(by_form.values(), key=worth) if by_form else []


def _gathered(lines: Iterable[StepLine]) -> list[StepLine]:
    """Lines of a form that spreads a step over several are put together, until a field comes again."""
    kept: list[StepLine] = []
    for form, fields, line, offset in lines:
        before = kept[-1] if kept else None
        if form.spread and before and before[0] is form and not before[1].keys() & fields.keys():
            kept[-1] = (form, before[1] | fields, before[2], before[3])
        else:
            kept.append((form, fields, line, offset))
    return kept


def _each_once(lines: Iterable[StepLine]) -> list[StepLine]:
    """Of the same step, as several ranks print it, the first."""
    kept: list[StepLine] = []
    seen: set[int] = set()
    for one in lines:
        step = step_index(one[1])
        if step is None or step not in seen:
            kept.append(one)
        if step is not None:
            seen.add(step)
    return kept


def step_index(fields: dict[str, str]) -> int | None:
    """The number of a step, where its line has one."""
    text = fields.get("step") or fields.get("iteration")
    return int(text) if text and text.isdigit() and len(text) < 16 else None


def _middle(lines: Sequence[StepLine], field: str) -> float | None:
    values = [value for _, fields, *_ in lines if (value := number(fields.get(field, ""))) and value > 0]
    return median(values) if values else None


def _last(lines: Sequence[StepLine], field: str) -> float | None:
    return next((value for _, fields, *_ in reversed(lines) if (value := number(fields.get(field, "")))), None)


def _peak(lines: Sequence[StepLine], **units: float) -> float | None:
    found = [
        value * unit
        for _, fields, *_ in lines
        for name, unit in units.items()
        if (value := number(fields.get(name, ""))) and value > 0
    ]
    return max(found, default=None)


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
    counted = f"{tokens:,.0f} tokens of a device in {format_seconds(step)}"
    return f"{counted} are {tokens / step:,.0f} a second, and it prints {rate:,.0f}"


def measured_step(reading: LogReading, settings: LogSettings, experiment: Experiment) -> MeasuredStep | None:
    """The median step; of a log that has tokens a second alone, by the tokens of the record; ``None`` if neither."""
    step, rate = reading.measured.step, reading.measured.tokens_per_second_per_device
    if step.median is not None:
        return MeasuredStep(
            **step.model_dump(include={"least", "most", "deviation", "left_out"}),
            seconds=step.median,
            steps=step.steps or None,
            tokens_per_device=rate * step.median if rate else None,
            source=reading.file,
        )
    tokens, devices = experiment.workload.tokens, experiment.hardware.devices or settings.devices
    if rate is None or tokens is None or devices is None:
        return None
    return MeasuredStep(
        seconds=tokens / devices / rate, tokens_per_device=tokens / devices, source=f"{reading.file}: tokens a second"
    )


LONGEST_LINE = 2000


class StepFeed:
    """Collects step times from lines; those of the first form that shows any.

    Args:
        tokens: of a device in a step: torchtitan logs tokens a second and device, not time.
    """

    def __init__(self, tokens: float | None = None):
        self._sizes = Sizes(tokens=tokens, devices=1 if tokens else None)
        self._times: dict[bytes, list[float]] = {}

    def feed(self, line: str) -> bool:
        """Read a line; whether it completes a step."""
        text = clean(line[:LONGEST_LINE].encode("utf-8", "replace"))
        forms = [form for form in steps() if form.anchor.decode() in text and (not form.bar or is_training_bar(text))]
        times = {form.anchor: seconds for form in forms if (seconds := self._sizes.seconds(form.read(text)))}
        for anchor, seconds in times.items():
            self._times.setdefault(anchor, []).append(seconds)
        return bool(times)

    @property
    def times(self) -> list[float]:
        """Seconds of each step so far."""
        return next((times for times in self._times.values() if times), [])
