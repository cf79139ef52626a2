"""What was measured in a run: steady steps apart from warm-up and slow steps, rates, and memory."""

from collections.abc import Iterable, Sequence
from statistics import median

from asap.experiments.logs.formats import Form
from asap.experiments.logs.numbers import number
from asap.experiments.observed import Measured
from asap.experiments.steady_steps import steady_count, step_times

StepLine = tuple[Form, dict[str, str], int, int]


class Sizes:
    """What turns a rate into the time of a step, where it is known: tokens, sequences, devices, accumulation."""

    def __init__(
        self, tokens: float | None = None, sequences: float | None = None, devices: int | None = None,
        accumulation: int | None = None,
    ):  # fmt: skip
        self.tokens, self.sequences, self.devices, self.accumulation = tokens, sequences, devices, accumulation

    def seconds(self, fields: dict[str, str]) -> float | None:
        """The time of a step from the fields of its line, the most exact one first."""
        values = {name: value for name, text in fields.items() if (value := number(text))}
        exact = {"seconds": 1.0, "milliseconds": 1e-3, "seconds_each": 1.0}
        for name, unit in exact.items():
            if name in values:
                return values[name] * unit
        if "milliseconds_of_iteration" in values and self.accumulation:
            return values["milliseconds_of_iteration"] * 1e-3 * self.accumulation
        if "tokens_per_second_per_device" in values and self.tokens and self.devices:
            return self.tokens / self.devices / values["tokens_per_second_per_device"]
        if "samples_per_second" in values and self.sequences:
            return self.sequences / values["samples_per_second"]
        if "steps_per_second" in values:
            return 1 / values["steps_per_second"]
        return None


def measured(lines: Sequence[StepLine], totals: Sequence[StepLine], sizes: Sizes) -> Measured:
    """Everything that is measured in the lines of one run."""
    lines = _of_one_form(_gathered(lines), sizes)
    unique = _each_once(lines)
    times = [(_index(fields), seconds) for _, fields, *_ in unique if (seconds := sizes.seconds(fields))]
    if not times:
        whole = [1 / rate for _, fields, *_ in totals if (rate := number(fields.get("steps_per_second", "")))]
        times = [(None, seconds) for seconds in whole[-1:]]
    steady = unique[len(unique) - steady_count(times) :] if times else unique[1:] or unique
    return Measured(
        step=step_times(times),
        tokens_per_second_per_device=_middle(steady, "tokens_per_second_per_device"),
        tokens_per_second=_middle(steady, "tokens_per_second"),
        samples_per_second=_middle(steady, "samples_per_second") or _last(totals, "samples_per_second"),
        tflops_per_device=_middle(steady, "tflops_per_device"),
        mfu=_middle(steady, "mfu") or _scaled(_middle(steady, "mfu_percent"), 0.01),
        peak_memory_bytes=_peak(
            [*lines, *totals], memory_gib=2**30, memory_mib=2**20, memory_gb=2**30, memory_mb=1e6, memory_bytes=1
        ),
        reserved_memory_bytes=_peak(totals, reserved_mib=2**20),
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
        step = _index(one[1])
        if step is None or step not in seen:
            kept.append(one)
        if step is not None:
            seen.add(step)
    return kept


def _index(fields: dict[str, str]) -> int | None:
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


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
