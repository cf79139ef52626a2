"""What a log says in more than one way: equations between its figures, and those that do not hold."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import half_digit
from asap.core.units import exact, format_percent, significant
from asap.experiments.experiment import Experiment
from asap.experiments.logs.formats import Form, table
from asap.experiments.logs.measured import DAY, LONG_BEFORE, SHORTEST_S, step_index
from asap.experiments.logs.reading import LogReading
from asap.experiments.logs.settings import LogSettings, said_differently
from asap.experiments.logs.text import number, seconds_of
from asap.hardware import find_chip
from asap.models.parameters import count_parameters, least_training_flops
from asap.plans.axes import Axis

_ENDLESS = 1e9  # epochs of data whose end is not known: the Trainer prints the largest integer
_WITHOUT_TIED = ("tflops", "mfu", "parameters")  # what some releases of torchtitan count without tied embeddings
_OF_PEFT = "adapter_config.json"  # what PEFT saves beside the log of a run that trains adapters
_LOW_RANK, _MOST_OF_LOW_RANK = (_OF_PEFT, "lora", "qlora", "peft"), 0.1
"""How they are called, and the share of the parameters that is taken for them where they are not."""
_MOST_ADAPTERS = 0.5  # share of the parameters that training all of a model exceeds, also where embeddings are frozen
_OF_PLAN = frozenset(
    ("data", "tensor", "pipeline", "context", "devices", "global_batch", "micro_batch", "accumulation")
)

_DEGREES: Mapping[str, Axis] = {"tensor": "model", "pipeline": "stage", "context": "seq"}


@dataclass(frozen=True)
class Equation:
    """Two products of quantities, and by how much the first may be of the second."""

    left: Sequence[str]
    right: Sequence[str]
    ask: str
    source: str
    least: float = 0.0
    most: float = math.inf

    def fails(self, known: Mapping[str, float]) -> str | None:
        """What is said on its two sides, where both are known and do not agree."""
        if not all(name in known for name in (*self.left, *self.right)):
            return None
        left, right = (math.prod(known[name] for name in side) for side in (self.left, self.right))
        slack = math.prod(1 + half_digit(known[name]) for name in (*self.left, *self.right))
        if self.least * right <= left * slack and left <= self.most * right * slack:
            return None
        return f"{_product(self.left, known, left)}, against {_product(self.right, known, right)}"


@cache
def equations() -> tuple[Equation, ...]:
    """Those of ``tables/checks.toml``."""
    return tuple(Equation(**one) for one in table("checks")["equation"])


def contradictions(reading: LogReading, settings: LogSettings, experiment: Experiment) -> dict[str, bool]:
    """What a log and the record read from it do not agree in, with what to ask; whether it is of the plan."""
    known = quantities(reading, settings, experiment)
    found = {
        f"it says {field} {' and '.join(map(str, values))}; give the {field}": field in _OF_PLAN
        for field, values in said_differently(reading).items()
    }
    told = ((one, one.fails(known)) for one in equations())
    return found | {f"{what}; {one.ask}": _OF_PLAN.issuperset((*one.left, *one.right)) for one, what in told if what}


def quantities(reading: LogReading, settings: LogSettings, experiment: Experiment) -> dict[str, float]:
    """Every figure that an equation knows; the record says what the log leaves to a name: the model and the chip."""
    workload, epochs = experiment.workload, number(reading.statements.get("epochs", "")) or 1
    said = {"global_batch": workload.global_batch, "sequence": workload.sequence_length, "context": 1}
    said |= settings.model_dump(exclude_none=True) | {"data_parallel": settings.data_parallel}
    if reading.stack == "maxtext":
        said.pop("micro_batch", None)  # of a device, whatever lies over it
    places = {
        "settings": said,
        "measured": reading.measured.model_dump(),
        "ending": reading.ending.model_dump(),
        "figures": reading.figures,
        "statements": reading.statements | {"whole_epochs": str(epochs - 1 if epochs < _ENDLESS else 0)},
        "model": _model_figures(experiment, said["global_batch"], said["sequence"]),
        "chip": _chip_figures(reading, experiment),
    }
    found: dict[str, float] = {}
    for name, (_, where, *unit) in table("checks")["quantity"].items():
        value: Any = places
        for part in where.split("."):
            value = (value or {}).get(part)
        if value and (known := number(str(value))):
            found[name] = known * (unit or [1.0])[0]
    if reading.stack == "torchtitan" and experiment.model and experiment.model.tied_embeddings:
        found = {name: value for name, value in found.items() if name not in _WITHOUT_TIED}
    if "peak_flops" not in reading.statements and reading.stack not in table("checks")["own_peak"]["stacks"]:
        found.pop("mfu", None)  # counted against the peak of another chip, whatever runs it
    if workload.adapter_rank:
        found.pop("trainable", None)  # of adapters, whatever the model has
    if reading.stack == "trainer" and found.get("context", 1) > 1:
        found.pop("samples_rate", None)  # of all devices, as if none shared a sequence
    return found


def _model_figures(experiment: Experiment, batch: int | None, sequence: int | None) -> dict[str, Any]:
    """Shapes of the model of a record, its parameters and the least FLOPs of a step, where all that decides them is."""
    model = experiment.model
    if model is None or model.missing() or model.vocab_assumed:
        return model.model_dump() if model else {}
    flops = least_training_flops(model, sequence) * sequence * batch if batch and sequence else None
    return model.model_dump() | {"parameters": count_parameters(model).total, "flops": flops}


def _chip_figures(reading: LogReading, experiment: Experiment) -> dict[str, float]:
    """Peaks and memory of a device: of the chip that the log names, else of the one that is said."""
    if (found := find_chip(reading.hardware.chip or experiment.hardware.chip or "")) is None:
        return {}
    peaks = found.chip.peak_flops
    peak = peaks.get(experiment.workload.precision or "", max(peaks.values()))
    of_chip = {"peak": peak, "peak_bf16": peaks.get("bf16", 0.0), "hbm_bytes": found.chip.hbm_bytes}
    said = number(reading.statements.get("peak_flops", ""))  # of another chip where the program does not know this one
    return {name: value / found.chip.devices for name, value in of_chip.items()} | ({"peak_bf16": said} if said else {})


def figures_of(steps: Sequence[tuple[Form, dict[str, str], int, int]]) -> dict[str, float]:
    """What the lines of steps say beside rates and times: clock, samples and tokens so far, share of the memory."""
    anchors = Counter(form.anchor for form, *_ in steps if not form.bar).most_common(1)
    lines = [fields for form, fields, *_ in steps if anchors and form.anchor == anchors[0][0]]
    found = {
        "step_by_clock": _growth(lines, "clock", DAY),
        "samples_of_step": _growth(lines, "consumed_samples"),
        "tokens_of_step": _growth(lines, "consumed_tokens"),
    }
    held, share = (number(lines[-1].get(name, "")) if lines else None for name in ("memory_gib", "memory_percent"))
    if held and share:
        found["capacity_bytes"] = 100 * 2**30 * held / share
    return {name: value for name, value in (found | {"lines": len(lines)}).items() if value}


def _growth(lines: Iterable[Mapping[str, str]], field: str, turns_at: float = math.inf) -> float | None:
    """By how much a field grows from step to step, as the median of the lines that have it."""
    said = ((step_index(one), seconds_of(one.get(field, ""))) for one in lines)
    known = [(step, *time) for step, time in said if step is not None and time]
    pairs = [(one, after) for one, after in pairwise(known) if after[0] > one[0]]
    grown = [((after[1] - one[1]) % turns_at, after[0] - one[0]) for one, after in pairs]
    if not grown:
        return None
    usual = median(whole for whole, _ in grown)
    if turns_at != math.inf:
        exact = all(worth < 1 for *_, worth in known) or usual >= SHORTEST_S
        return median(whole / count for whole, count in grown) if exact else None
    worth = max(each for *_, each in known)
    if worth > 1 and usual < LONG_BEFORE * worth:  # rounded: all together grow by more than the last digit hides
        (first, start, _), (last, end, _) = known[0], known[-1]
        return (end - start) / (last - first) if last > first and end - start >= LONG_BEFORE * worth else None
    return median(whole / count for whole, count in grown)


def _product(names: Sequence[str], known: Mapping[str, float], whole: float) -> str:
    words = table("checks")["quantity"]
    factors = " × ".join(f"{_figure(known[name])} {words[name][0]}" for name in names)
    return f"{factors} are {_figure(whole)}" if len(names) > 1 else factors


def _figure(value: float) -> str:
    return exact(value) if value == round(value) else significant(value, 4)


def other_run_differences(reading: LogReading, settings: LogSettings, experiment: Experiment) -> tuple[str, ...]:
    """In what a log is of another run than the record: what it measured is then not taken."""
    said, model, plan = experiment.hardware, experiment.model, experiment.plan
    known, chip = find_chip(said.chip) if said.chip else None, reading.hardware.chip
    found = []
    if known and chip and not chip.startswith(known.chip.name):
        found.append(("chip", chip, known.chip.name))
    if known and known.chip.kind == "gpu":
        found.append(("devices", settings.devices, said.devices))
    trained, whole = settings.trainable, settings.parameters
    all_of_them = experiment.hyperparameters and not experiment.workload.adapter_rank
    if all_of_them and trained and whole and trained < _MOST_ADAPTERS * whole:
        found.append(("trained parameters", exact(trained), exact(whole)))
    found += [
        ("global batch", settings.global_batch, experiment.workload.global_batch),
        ("sequence length", settings.sequence, experiment.workload.sequence_length),
        *((name, getattr(settings, name), getattr(model, name, None)) for name in ("layers", "hidden")),
        *((name, getattr(settings, name), plan and plan.degree(axis)) for name, axis in _DEGREES.items()),
    ]
    other = "; ".join(
        f"{name} {theirs}, not {ours}" for name, theirs, ours in found if theirs and ours and theirs != ours
    )
    return (f"{reading.file} is of another run ({other}): what it measured is not taken",) if other else ()


def trains_adapters(reading: LogReading, settings: LogSettings, path: Path) -> bool:
    """Whether a log says that low-rank adapters are trained, and not all parameters.

    Raises:
        ConfigError: it says that a step is another than one of training on text, or trains other parts.
    """
    layers, hidden, vocab = settings.layers or 0, settings.hidden or 0, settings.vocab or 0
    least = (vocab + 2 * layers * hidden) * hidden if layers and vocab else None  # embeddings, queries, outputs
    share = settings.trainable / whole if settings.trainable and (whole := settings.parameters or least) else 1.0
    if other := table("checks")["other_steps"].get(settings.objective or ""):
        hint = "`asap resolve FILE` shows what the log says; give a run that trains on text"
        raise ConfigError(f"{other} is not modelled", where=str(path), hint=hint)
    said = _OF_PEFT if path.with_name(_OF_PEFT).is_file() else settings.adapters
    unnamed, ranked = said in (None, "none"), "adapter_rank" in reading.statements
    if unnamed and not ranked and share > _MOST_ADAPTERS:
        return False
    if said in _LOW_RANK or (unnamed and (ranked or share < _MOST_OF_LOW_RANK)):
        return True
    named = f"adapters ({said})" if said else "adapters"
    most = "" if settings.parameters else "at most "
    what = f"{most}{format_percent(share, 2)} of the parameters" if share <= _MOST_ADAPTERS else named
    raise ConfigError(
        f"trains {what}: training a part of the parameters is not modelled", where=str(path),
        hint="`asap resolve FILE` shows what the log says; give a run that trains all parameters, or low-rank adapters",
    )  # fmt: skip
