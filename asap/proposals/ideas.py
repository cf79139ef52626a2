"""Ideas from the history: changes beside the plan that won in runs like this one, each with what it can save at most.

A family of changes (``fused cross-entropy``) is weighed by the records in which it was measured, failures too: each
counts by how alike its chip, model and sequence are. A run in which a change has nothing to touch, or which has it
already, is not told of it.
"""

import math
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import CHANGE, Provenance, Quantity, counted, format_change
from asap.hardware import find_chip
from asap.history.files import load_records
from asap.history.record import ChangeKind, HistoryRecord, Outcome, Part
from asap.history.similarity import chip_likeness
from asap.models import Workload, count_parameters
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.prediction.prediction import Prediction
from asap.proposals.selection.search import run_of
from asap.proposals.trials import trials_of
from asap.study.study import Study


class Standing(StrEnum):
    """What the engine can say of a change before it is run."""

    PREDICTED = "predicted"
    BOUNDED = "bounded"
    MEASURE = "must be measured"


class Idea(BaseModel):
    """One change to try beside the proposals."""

    model_config = ConfigDict(frozen=True)

    title: str
    kind: ChangeKind
    change: str = Field(description="in the words of the launcher, compiler or code")
    hypothesis: str = Field(default="", description="which part of the step it shortens, and why")
    refuted_by: str = Field(default="", description="the observation that would refute it")
    how: str = Field(default="", description="the cheapest test")
    standing: Standing
    bound: Quantity | None = Field(default=None, description="share of the step that it touches: more it cannot save")
    effect: Quantity | None = Field(default=None, description="change of the step time that was measured elsewhere")
    runs: int = Field(default=0, description="runs elsewhere that measured it")
    precedents: tuple[str, ...] = Field(default=(), description="IDs of records and notes")
    by: Literal["engine", "model"] = "engine"


MOST = 3
LEAST_GAIN = 0.003
"""Of ln(step time), after doubt: less is within the noise of repeated runs of the records."""
_FAILED = math.log(0.9)
"""What a record that ran out of memory, and so has no speedup, counts as, in ln(throughput)."""
_DOUBT = 1.0
"""A family is believed as if one more run like this one had shown nothing."""
_DECAY = 4.0
"""Doublings of parameters or sequence at which likeness falls to 1/e."""
_NETWORK = ("collective", "reduce", "gather", "all-to-all", "permute", "send", "broadcast")
_PARTS: dict[Part, tuple[str, ...]] = {
    Part.COLLECTIVES: _NETWORK, Part.OPTIMIZER: ("optimizer",), Part.INPUT: ("host",)
}  # fmt: skip
"""Parts of a predicted step that hold a part, by words of their names: an upper bound. The others are kinds of
computation, whose shares a prediction holds."""
_FAMILIES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("ideas.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Situation:
    """What decides whether a change carries over."""

    chip: str | None
    parameters: float | None = None
    sequence: int | None = None


@dataclass(frozen=True)
class Family:
    """Changes of one kind, with what they brought."""

    name: str
    gain: float
    records: tuple[HistoryRecord, ...]
    weights: tuple[float, ...]


def engine_ideas(study: Study, incumbent: Prediction | None, named: Collection[str] = ()) -> tuple[Idea, ...]:
    """Ideas whose gain elsewhere, after doubt and no more than their part of this step, is largest; or those named."""
    model, workload = study.experiment.model, study.experiment.workload
    size = count_parameters(model).total if model and not model.missing() else None
    situation = Situation(study.chip.name if study.chip else None, size, workload.sequence_length)
    found, offered = [], {one.name for one in trials_of(study)}
    of_xla = run_of(study).xla

    def applies(name: str) -> bool:
        family = _FAMILIES.get(name, {})
        if of_xla and family.get("compiler") == "torch":
            return False
        if named or (study.plan is None and "needs" in family):
            return name in named
        return family.get("trial") not in offered and not is_moot(study.plan, workload, name)

    families = [one for one in ranked(load_records(), situation) if applies(one.name)]
    for best, *others in decisions(families):
        standing, bound = bounded(incumbent, best.records[0].touches)
        most_saved = -math.log(max(1 - bound.value, 1e-9)) if bound else math.inf
        if (gain := min(best.gain, most_saved)) > LEAST_GAIN or named:
            found.append((gain, _idea(best, others, standing, bound)))
    return tuple(idea for _, idea in sorted(found, key=lambda one: -one[0])[:MOST])


def decisions(families: Iterable[Family]) -> list[tuple[Family, ...]]:
    """Families that exclude each other together, each group and its families in their order."""
    found: dict[str, tuple[Family, ...]] = {}
    for one in families:
        key = _FAMILIES.get(one.name, {}).get("decides", one.name.partition(",")[0])
        found[key] = (*found.get(key, ()), one)
    return list(found.values())


def ranked(records: Iterable[HistoryRecord], situation: Situation) -> list[Family]:
    """Families of changes with a kind, the largest gain after doubt first; other kinds of chips are left out."""
    by_name: dict[str, list[tuple[float, HistoryRecord]]] = {}
    for record in records:
        alike = _likeness(record, situation) if record.kind is not None and record.other_changes else 0.0
        if alike > 0 and _has_units(situation.chip, family_of(record)):
            by_name.setdefault(family_of(record), []).append((alike, record))
    found = []
    for name, weighed in by_name.items():
        weights, of = zip(*weighed, strict=True)
        gains = sum(w * (math.log(one.speedup) if one.speedup else _FAILED) for w, one in weighed)
        found.append(Family(name, gains / (sum(weights) + _DOUBT), of, weights))
    return sorted(found, key=lambda one: -one.gain)


def family_of(record: HistoryRecord) -> str:
    """What stands before the colon of its change."""
    return record.other_changes[0].partition(":")[0]


def bounded(incumbent: Prediction | None, touches: Part | None) -> tuple[Standing, Quantity | None]:
    """What can be said of a change that touches a part of the step: the share of the step that this part is."""
    parts = incumbent.parts if incumbent and incumbent.step_time else ()
    if incumbent is None or touches is None or not parts or touches not in {*_PARTS, *incumbent.shares}:
        return Standing.MEASURE, None
    held = sum(one.exposed_s for one in parts if any(name in one.name for name in _PARTS.get(touches, ())))
    share = incumbent.shares.get(touches, held / (sum(one.exposed_s for one in parts) or 1.0))
    source = f"predicted share of {touches.value} in the step that runs"
    return Standing.BOUNDED, Quantity(value=share, unit="fraction", provenance=Provenance.MODELLED, source=source)


def is_moot(plan: Plan | None, workload: Workload, family: str) -> bool:
    """Whether a run is known to have a change already, or nothing that it could touch."""
    axis = _FAMILIES.get(family, {}).get("needs")
    if plan is not None and axis is not None and plan.degree(cast(Axis, axis)) == 1:
        return True
    precision, attention = (workload.precision or "").lower(), (workload.attention or "").lower()
    in_use = {
        "asynchronous tensor parallelism": bool(workload.overlaps_tensor),
        "torch.compile": bool(workload.compiled), "Liger kernels": bool(workload.fused_linear_cross_entropy),
        "fused cross-entropy": bool(workload.fused_linear_cross_entropy),
        "float8 matmuls": "8" in precision, "interleaved pipeline schedule": bool(plan and plan.pipeline_repeats > 1),
        "flash attention kernel": any(word in attention for word in ("flash", "splash", "fused", "auto")),
    }  # fmt: skip
    return in_use.get(family, in_use.get(family.partition(",")[0], False))


def _has_units(chip: str | None, family: str) -> bool:
    """Whether a chip has what a family uses: float8 and SparseCores need units of their own."""
    known = find_chip(chip) if chip else None
    if known is None:
        return True
    units, cores = known.chip.peak_flops, known.chip.sparse_cores
    lacks = {"float8": "fp8" not in units, "float8 matmuls, mxfp8": "fp4" not in units, "SparseCore": not cores}
    return not any(family.startswith(name) and lacking for name, lacking in lacks.items())


def _likeness(record: HistoryRecord, situation: Situation) -> float:
    if situation.chip is None or record.hardware.chip is None:
        return 0.0
    alike = chip_likeness(situation.chip, record.hardware.chip)
    sizes = _falling(situation.parameters, record.model.parameters)
    sequences = _falling(situation.sequence, record.workload.sequence_length)
    return (0.0 if math.isnan(alike) else alike) * sizes * record.confidence * sequences


def _falling(one: float | None, other: float | None) -> float:
    return math.exp(-abs(math.log2(one / other)) / _DECAY) if one and other else 0.5


def _idea(family: Family, others: Sequence[Family], standing: Standing, bound: Quantity | None) -> Idea:
    weighed = zip(family.weights, family.records, strict=True)
    _, nearest = max(weighed, key=lambda one: ((one[1].speedup or 0) > 1, one[0]))
    worse = sum(one.outcome is not Outcome.IMPROVED for one in family.records)
    known = [f"{worse} of them got no faster"] if worse else []
    known += [
        f"instead: {one.name}, {counted(len(one.records), 'run')}, "
        f"{format_change(1 + mean.value) if (mean := _effect(one)) else 'none of which fitted'}"
        for one in others
    ]
    return Idea(
        title=family.name,
        kind=nearest.kind or ChangeKind.PATCH,
        change=nearest.other_changes[0].partition(": ")[2],
        hypothesis=f"{'; '.join(known)}." if known else "",
        refuted_by="the median of ten steady steps is no shorter than that of what runs now",
        how="the run as it is with this one change, for thirty steps",
        standing=standing,
        bound=bound,
        effect=_effect(family),
        runs=len(family.records),
        precedents=tuple(one.id for one in family.records[:3]),
    )


def _effect(family: Family) -> Quantity | None:
    known = [(w, 1 / one.speedup - 1) for w, one in zip(family.weights, family.records, strict=True) if one.speedup]
    if not known:
        return None
    changes = [change for _, change in known]
    mean = sum(weight * change for weight, change in known) / (sum(weight for weight, _ in known) or 1.0)
    source = f"{counted(len(changes), 'published run')}; from the least to the most"
    return Quantity(
        value=mean, unit=CHANGE, provenance=Provenance.PRECEDENT, source=source,
        low=min(changes) if len(changes) > 1 else None, high=max(changes) if len(changes) > 1 else None,
    )  # fmt: skip
