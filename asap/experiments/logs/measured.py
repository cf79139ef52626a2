"""What happened in a run: steady steps, rates, memory, how it ended; of a log that is still written, step by step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median

from asap.experiments.logs.formats import Form, steps
from asap.experiments.logs.text import clean, is_training_bar, number, seconds_of
from asap.experiments.observed import FEWEST, Measured, StepTimes, steady_count, step_times

StepLine = tuple[Form, dict[str, str], int, int]
LONG_BEFORE = 20  # last digits by which a time must grow, so that two that are cut are off by less than a tenth
BAR_FORGETS = 10
"""Steps after which a progress bar's mean, to which each new one adds 0.3 (tqdm's smoothing), is of those alone."""
LONGEST_CUT = 10.0  # seconds, of which one that is cut off is a tenth
_EXACT = frozenset(("seconds", "milliseconds", "seconds_each", "steps_per_second"))
_OF_LINE = {"seconds_of_line": 1.0, "milliseconds_of_line": 1e-3, "figure_of_line": 1.0}
_SINCE = {"elapsed_milliseconds": 1e-3, "elapsed_seconds": 1.0, "elapsed_minutes": 60.0, "elapsed_hours": 3600.0}
_CLOCK = {"clock": 1.0}
_GROWN = 1.5  # the last of times since the start, by the first
DAY = 86_400.0
SHORTEST_S = 5.0  # between two lines whose times are whole seconds: one more or less is a fifth


@dataclass(frozen=True)
class Sizes:
    """What turns a rate into the time of a step, where it is known."""

    tokens: float | None = None
    sequences: float | None = None
    devices: int | None = None
    clock: float | None = None
    """A step by the times of its lines, which counts where they say no other, and settings say of what run."""
    steps: float | None = None
    """Of the whole run."""

    def seconds(self, fields: dict[str, str]) -> float | None:
        """The time of a step from the fields of its line, the most exact one first."""
        own = self.tokens / self.devices if self.tokens and self.devices else None
        times = {"seconds": 1.0, "milliseconds": 1e-3, "seconds_each": 1.0}
        amounts = {"tokens_per_second_per_device": own, "samples_per_second": self.sequences, "steps_per_second": 1.0}
        amounts |= {"tokens_per_second": self.tokens}
        printed = {name: value for name in (*times, *amounts) if (value := number(fields.get(name, "")))}
        if printed.get("steps_per_second", 1.0) < _LEAST_RATE:
            printed.pop("steps_per_second")
        known = {name: value * times[name] for name, value in printed.items() if name in times}
        known |= {name: one / value for name, value in printed.items() if (one := amounts.get(name))}
        runtime = number(fields.get("runtime", ""))
        if runtime and self.steps and known.keys() <= {"steps_per_second"}:
            return runtime / self.steps  # by more digits than the rate has
        return next(iter(known.values()), None)


_LEAST_RATE = 0.005
"""Of which the third decimal, the last that Trainers print, hides a tenth."""


def measured(lines: Sequence[StepLine], totals: Sequence[StepLine], sizes: Sizes) -> Measured:
    """Everything that is measured in the lines of one run."""
    bars = {line for form, _, line, _ in lines if form.bar}
    lines = [one for one in lines if not (one[0].general and one[2] in bars and "seconds_each" in one[1])]
    unique = _each_once(_main_form(_gathered(_by_elapsed(_iterations_summed(lines))), sizes))
    unique = _short_bar(unique) if unique and unique[0][0].bar else unique
    totals = _gathered(sorted(totals, key=lambda one: one[0].spread))
    times = [(step_index(fields), seconds) for _, fields, *_ in unique if (seconds := sizes.seconds(fields))]
    whole = [seconds for _, fields, *_ in totals if (seconds := sizes.seconds(fields))]
    if whole and (not times or (unique[0][0].bar and steady_count(times) < FEWEST)):
        times = [(None, whole[-1])]
    times = times or ([(None, sizes.clock)] if sizes.clock else [])
    steady = unique[len(unique) - steady_count(times) :] if len(times) > 1 else unique[1:] or unique
    step = step_times(times)
    if len(times) == 1 and times[0][0] in (0, 1):
        steady, step = [], StepTimes(most=times[0][1], left_out=1)
    bar = unique[-1][1].get("total_steps", "") if unique and unique[-1][0].bar else ""
    return Measured(
        step=step,
        steps_of_bar=int(number(bar) or 0) or None,
        **_rates(steady, step.median, sizes),
        samples_per_second=_middle(steady, "samples_per_second")
        or _middle(having([*lines, *totals], "samples_per_second")[-1:], "samples_per_second"),
        tflops_per_device=_middle(steady, "tflops_per_device") or _middle(lines, "tflops_per_device"),
        mfu=_mfu(steady),
        peak_memory_bytes=_peak(
            [*lines, *totals], memory_gib=2**30, memory_mib=2**20, memory_gb=1e9, memory_mb=1e6, memory_bytes=1
        ),
        reserved_memory_bytes=_peak(totals, reserved_mib=2**20, reserved_gb=1e9),
        compiled_memory_bytes=_peak(totals, compiled_gib=2**30),
    )


def _short_bar(lines: Sequence[StepLine]) -> list[StepLine]:
    """Of a bar's lines over a few steps one: with the time between them, else with the bar's mean; of the first steps,
    whose mean holds start-up and compilation, numbered as the first."""
    form, fields, line, offset = lines[-1]
    said = (one[1].get("bar_seconds", "") for one in (lines[0], lines[-1]))
    begun, ended = (seconds_of("0:" * (text.count(":") == 1) + text) for text in said)
    steps = (step_index(fields) or 0) - (step_index(lines[0][1]) or 0)
    if steps >= BAR_FORGETS:
        return [*lines]
    if begun and ended and steps > 0 and ended[0] - begun[0] >= LONGEST_CUT:
        return [(form, fields | {"seconds": str((ended[0] - begun[0]) / steps)}, line, offset)]
    return [(form, fields if (step_index(fields) or 0) >= BAR_FORGETS else fields | {"step": "1"}, line, offset)]


def _by_elapsed(lines: Sequence[StepLine]) -> Iterator[StepLine]:
    """Lines that say a date, or a time that grows, with a step's since one before; others by :func:`_line_seconds`."""
    said = [time[0] for _, fields, *_ in lines if (time := _time(fields, _OF_LINE)) and time[0]]
    grows = len(said) > FEWEST and said == sorted({*said}) and said[-1] > _GROWN * said[0]
    before, last, clock = None, None, None
    for form, fields, line, offset in lines:
        step, passed = step_index(fields), _time(fields, _OF_LINE | _SINCE if grows else _SINCE)
        steps = 0 if step is None or last is None else step - last
        own = None if grows or fields.keys() & _EXACT else _line_seconds(fields, steps, clock)
        if passed and step is not None and not own and not (form.general and fields.keys() & _EXACT):
            since = passed[0] - before[1] if before else 0.0
            if before and step > before[0] and since >= LONG_BEFORE * passed[1]:
                own = since / (step - before[0])
            if before is None or step < before[0] or since < 0 or own:
                before = (step, passed[0])
        last, clock = (last, clock) if step is None else (step, _time(fields, _CLOCK))
        yield form, fields | ({"seconds": str(own)} if own else {}), line, offset


def _time(fields: Mapping[str, str], names: Mapping[str, float]) -> tuple[float, float] | None:
    """A time by its names and their units, in seconds, and what its last digit is worth."""
    said = ((seconds_of(fields[name]), unit) for name, unit in names.items() if name in fields)
    return next(((time[0] * unit, time[1] * unit) for time, unit in said if time), None)


def _line_seconds(fields: Mapping[str, str], steps: int, clock: tuple[float, float] | None) -> float | None:
    """The time of a step by that of a line: of its only step, or by the clock of one or all since the line before."""
    said, now = _time(fields, _OF_LINE), _time(fields, _CLOCK)
    passed = (now[0] - clock[0]) % DAY if now and clock else 0.0
    time = said[0] if said else 0.0
    if not time or steps < 1:
        return None
    if passed < SHORTEST_S:
        return time if steps == 1 and fields.keys() & _OF_LINE.keys() != {"figure_of_line"} else None
    return next((time * n / steps for n in (steps, 1) if abs(passed - n * time) <= max(0.1 * passed, 1.0)), None)


def _iterations_summed(lines: Sequence[StepLine]) -> list[StepLine]:
    """Lines with the time of a step by its iterations, where each of them has its line and that says the step too, or
    one of them a line and the next line says how many there were."""
    groups = [[*of_step] for _, of_step in groupby(lines, lambda one: one[1].get("step"))]
    marked = any("stepped" in one[1] for one in lines)
    for whole, after in pairwise(groups[1:]):  # the log may begin within the first
        form, fields, line, offset = whole[0]
        counts = ([number(one.get(name, "")) or 0 for name in ("step", "iteration")] for one in (fields, after[0][1]))
        steps, iterations = (last - first for first, last in zip(*counts, strict=True))
        times = [number(one[1].get("milliseconds_of_iteration", "")) or 0 for one in whole]
        each, rest = divmod(iterations, steps) if steps > 0 else (0, 0)
        ended = not marked or "stepped" in fields.keys() & after[0][1].keys()  # else lines are left out between
        if ended and all(times) and not rest and (each == len(whole) or (each and len(whole) == 1)):
            whole[0] = (form, fields | {"milliseconds": str(each * fmean(times))}, line, offset)
    return [one for of_step in groups for one in of_step]


def _main_form(lines: list[StepLine], sizes: Sizes) -> list[StepLine]:
    """The lines of the form that says times most exactly; a progress bar counts where nothing else does."""
    by_form: dict[tuple[int, str], list[StepLine]] = {}
    for one in lines:
        of_bar = (0, one[1].get("total_steps", ""))
        by_form.setdefault(of_bar if one[0].bar else (id(one[0].fields), ""), []).append(one)

    def worth(found: list[StepLine]) -> tuple[bool, bool, bool, float]:
        form, fields = found[-1][0], found[-1][1]
        seconds = sizes.seconds(fields)
        direct = bool(fields.keys() & {"seconds", "milliseconds"}) and fields.keys().isdisjoint(_SINCE)
        whole = (number(fields.get("total_steps", "")) or 0) * (seconds or 0) if form.bar else len(found)
        return seconds is not None, not form.bar, direct, whole

    return max(by_form.values(), key=worth) if by_form else []


def _gathered(lines: Iterable[StepLine]) -> list[StepLine]:
    """Lines of a form that spreads a step over several are put together, until a field comes again."""
    kept: list[StepLine] = []
    for form, fields, line, offset in lines:
        before = kept[-1] if kept else None
        if form.spread and before and before[0].fields is form.fields and not before[1].keys() & fields.keys():
            kept[-1] = (form, before[1] | fields, before[2], before[3])
        else:
            kept.append((form, fields, line, offset))
    return kept


def _each_once(lines: Iterable[StepLine]) -> list[StepLine]:
    """Of the same step, as several ranks print it, the first."""
    kept: dict[int, StepLine] = {}
    for place, one in enumerate(lines):
        kept.setdefault(-1 - place if (step := step_index(one[1])) is None else step, one)
    return [*kept.values()]


def step_index(fields: Mapping[str, str]) -> int | None:
    """The number of a step, where its line has one."""
    text = fields.get("step") or fields.get("iteration")
    return int(text) if text and text.isdigit() and len(text) < 16 else None


def having(lines: Iterable[StepLine], *fields: str) -> list[StepLine]:
    """Those with one of some fields."""
    return [one for one in lines if not one[1].keys().isdisjoint(fields)]


def _middle(lines: Sequence[StepLine], field: str) -> float | None:
    values = [value for _, fields, *_ in lines if (value := number(fields.get(field, ""))) and value > 0]
    return median(values) if values else None


_RATES = ("tokens_per_second_per_device", "tokens_per_second", "tokens_per_second_as_said")


def _rates(lines: Sequence[StepLine], step: float | None, sizes: Sizes) -> dict[str, float | None]:
    """Tokens a second of a device, of all, or of either: one device, or the time of a step, says which."""
    each, whole, said = (_middle(lines, name) for name in _RATES)
    if each or whole or not said:
        return {"tokens_per_second_per_device": each or (said if whole else None), "tokens_per_second": whole}
    if sizes.devices == 1:
        return dict.fromkeys(_RATES[:2], said)
    tokens, made = sizes.tokens or 0.0, said * (step or 0.0)
    known = {_RATES[0]: tokens / sizes.devices, _RATES[1]: tokens} if sizes.devices else {}
    return {next((name for name, one in known.items() if abs(made - one) < 0.1 * one), _RATES[2]): said}


def _mfu(lines: Sequence[StepLine]) -> float | None:
    """A share of the peak; one that is said without a unit is of one or of a hundred, or no such share."""
    said = _middle(lines, "mfu_as_said") or 0.0
    said = said if said <= 1 else 0.01 * said if said <= 100 else 0.0
    return _middle(lines, "mfu") or 0.01 * (_middle(lines, "mfu_percent") or 0.0) or said or None


def _peak(lines: Sequence[StepLine], **units: float) -> float | None:
    said = ((number(one[1][name]), unit) for one in lines for name, unit in units.items() if name in one[1])
    return max((value * unit for value, unit in said if value), default=None)


LONGEST_LINE = 2000


class StepFeed:
    """Collects step times from lines; those of the first form that shows any.

    Args:
        tokens: of a device in a step: torchtitan logs tokens a second and device, not time.
    """

    def __init__(self, tokens: float | None = None):
        self._sizes = Sizes(tokens=tokens, devices=1 if tokens else None)
        self._times: dict[bytes, list[float]] = {}
        self._step: int | None = None

    def feed(self, line: str) -> bool:
        """Read a line; whether it completes a step."""
        text = clean(line[:LONGEST_LINE].encode("utf-8", "replace"))
        said = (form for form in steps() if form.anchor.decode() in text and not form.general)
        forms = (form for form in said if not form.bar or is_training_bar(text))
        times = {form.anchor: seconds for form in forms if (seconds := self._sizes.seconds(form.read(text)))}
        if self._times.keys() <= {b""} and not times and (seconds := self._by_metrics(text)):
            times = {b"": seconds}  # of no program's own form
        for anchor, seconds in times.items():
            self._times.setdefault(anchor, []).append(seconds)
        return bool(times)

    def _by_metrics(self, text: str) -> float | None:
        """The time of a step by what metrics are called; of a line, where it is of the step behind the last one."""
        fields = next(form for form in steps() if form.general).read(text)
        if (step := step_index(fields)) is None:
            return None
        passed, self._step = step - (step if self._step is None else self._step), step
        return self._sizes.seconds(fields) or _line_seconds(fields, passed, None)

    @property
    def times(self) -> list[float]:
        """Seconds of each step so far."""
        return next((times for times in self._times.values() if times), [])
