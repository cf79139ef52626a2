"""History records from published runs: which pairs of runs make a record, and which records are selected.

Within a group (same source, model, chips, sequence and batch) runs differ in their sharding. The fastest run of each
mesh is paired with a faster one of another mesh, and each run that ran out of memory with one that fits; both times
with the run that differs least otherwise. Half of the pairs are reversed, as failures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from asap.calibration.dataset.rows import Row, UnusableRowError
from asap.calibration.dataset.runs import PublishedRun, read_run
from asap.core.text import plain
from asap.core.units import Provenance, Quantity
from asap.diagnosis import Bottleneck
from asap.experiments import HardwareReference
from asap.history.changes import mesh_of, other_changes
from asap.history.record import HistoryRecord, Model, Outcome, Source, summary_of, title_of
from asap.models import count_parameters
from asap.plans import AXES

MINIMUM_SPEEDUP = 1.05
"""Ratio of step times below which two runs count as equally fast."""
TRUST = {"A": 0.9, "A-": 0.8, "B": 0.7}
"""Confidence by the trust that the measurements' collector put in a source; less where more than the mesh changed."""
MORE_CHANGED = 0.2
_ANY_PRECISION = "bf16"
_STATED = {
    "precision": "precision",
    "attention": "attention_impl",
    "framework": "framework",
    "zero_stage": "zero_stage",
    "sequence_parallel": "megatron_sp",
}
"""Field of a workload → key of a row, for fields that the reader of runs would otherwise infer."""


@dataclass(frozen=True)
class Published:
    """A published row and the run read from it."""

    row: Row
    run: PublishedRun

    @property
    def mesh(self) -> str:
        """The sharding alone."""
        return mesh_of(self.run.plan)

    @property
    def variant(self) -> str:
        """The variant of the training software that a TPU row names; of a GPU row it names the sharding."""
        raw: Any = self.row.get("raw_config")
        return plain(raw.get("method", ""), 40) if self.run.hardware.chip.torus and isinstance(raw, dict) else ""

    @property
    def group(self) -> tuple[str, ...]:
        """What runs have in common that may be compared; on TPUs the variant may differ."""
        if self.run.hardware.chip.torus is None:
            return (self.run.group,)
        work = self.run.workload
        parts = (work.framework, self.run.architecture.name, self.run.chip, self.run.hardware.devices)
        return tuple(map(str, (*parts, work.global_batch, work.sequence_length)))


def read_published(rows: Iterable[Row], models: Mapping[str, Row]) -> list[Published]:
    """The usable rows. What the reader of runs infers for predictions is left unknown."""
    found: list[Published] = []
    for row in rows:
        try:
            run = read_run({"precision": _ANY_PRECISION, **row}, models)
        except UnusableRowError:
            continue
        stated = {field: row.get(key) for field, key in _STATED.items()}
        found.append(Published(row, replace(run, workload=run.workload.model_copy(update=stated))))
    return found


def candidate_records(published: Sequence[Published]) -> list[HistoryRecord]:
    """Every possible record, in the order of the rows."""
    groups: defaultdict[tuple[str, ...], list[Published]] = defaultdict(list)
    for one in published:
        groups[one.group].append(one)
    records: list[HistoryRecord] = []
    pairs = (pair for members in groups.values() for pair in _pairs(members))
    for number, (worse, better) in enumerate(pairs):
        before, after = (better, worse) if number % 2 else (worse, better)
        try:
            records.append(_record(before, after))
        except ValidationError:
            continue
    return records


def choose(records: Sequence[HistoryRecord], limit: int, per_source: int) -> list[HistoryRecord]:
    """A selection balanced over sources, hardware, sizes, axes and outcomes; changes of the mesh alone first."""
    left: defaultdict[str, list[HistoryRecord]] = defaultdict(list)
    for record in records:
        left[record.source.rows[0].partition("-")[0]].append(record)
    used: Counter[tuple] = Counter()
    titles: set[str] = set()
    chosen: list[HistoryRecord] = []
    for _ in range(per_source):
        for source in sorted(left):
            ordered = sorted(left[source], key=lambda record: (used[_kind(record)], *_plainness(record)))
            fresh = next((record for record in ordered if record.title not in titles), None)
            if fresh is None or len(chosen) == limit:
                continue
            chosen.append(fresh)
            left[source].remove(fresh)
            titles.add(fresh.title)
            used[_kind(fresh)] += 1
    return sorted(chosen, key=lambda record: record.id)


def _pairs(members: Sequence[Published]) -> Iterator[tuple[Published, Published]]:
    """Worse and better run of each pair; the better one differs least in anything but the mesh."""
    fitting = sorted((one for one in members if one.run.step_time), key=_seconds)
    fastest: dict[str, Published] = {}
    for one in fitting:
        fastest.setdefault(one.mesh, one)
    for slower in fastest.values():
        faster = [
            one for one in fitting if one.mesh != slower.mesh and _seconds(slower) / _seconds(one) >= MINIMUM_SPEEDUP
        ]
        if faster:
            yield slower, min(faster, key=lambda one: (len(_other_changes(slower, one)), _seconds(one)))
    for failed in (one for one in members if one.run.out_of_memory):
        if fitting:
            yield failed, min(fitting, key=lambda one: (_distance(failed, one), _seconds(one)))


def _seconds(published: Published) -> float:
    return published.run.step_time or float("inf")


def _distance(one: Published, other: Published) -> float:
    axes = sum(one.run.plan.degree(axis) != other.run.plan.degree(axis) for axis in AXES)
    return axes + len(_other_changes(one, other))


def _other_changes(before: Published, after: Published) -> tuple[str, ...]:
    changes = [*other_changes(before.run.plan, after.run.plan, before.run.workload, after.run.workload)]
    old, new = before.variant, after.variant
    if old and new and old != new:
        changes.append(f"software variant from {old} to {new}")
    return tuple(changes)


def _record(before: Published, after: Published) -> HistoryRecord:
    run, others = before.run, _other_changes(before, after)
    measured = _measured(before), _measured(after)
    speedup = measured[0].value / measured[1].value if measured[0] and measured[1] else None
    outcome = _outcome(after, speedup)
    hardware = HardwareReference(
        name=f"{run.hardware.chips}x {plain(before.row['hardware'], 40)}",
        chip=run.chip,
        topology=run.hardware.topology,
        slices=run.hardware.slices,
        devices=run.hardware.devices,
    )
    what = plain(f"{run.architecture.name} on {hardware.name}", 90)
    trust = TRUST[str(before.row["trust"])] if "trust" in before.row else min(TRUST.values())
    return HistoryRecord(
        id=f"{run.id}--{after.run.id}",
        title=title_of(what, run.plan, after.run.plan, others, outcome, measured[0] is not None),
        model=Model(
            name=run.architecture.name,
            parameters=float(count_parameters(run.architecture).total),
            architecture=run.architecture,
        ),
        hardware=hardware,
        workload=run.workload,
        before=run.plan,
        after=after.run.plan,
        bottleneck=Bottleneck.MEMORY_CAPACITY if run.out_of_memory else None,
        other_changes=others,
        measured_before=measured[0],
        measured_after=measured[1],
        outcome=outcome,
        speedup=speedup,
        summary=summary_of(what, run.plan, after.run.plan, outcome, measured, speedup, others),
        source=_source(before, after),
        confidence=round(trust - (MORE_CHANGED if others else 0.0), 2),
    )


def _outcome(after: Published, speedup: float | None) -> Outcome:
    if after.run.out_of_memory:
        return Outcome.OUT_OF_MEMORY
    return Outcome.SLOWER if speedup is not None and speedup <= 1 else Outcome.IMPROVED


def _measured(published: Published) -> Quantity | None:
    if published.run.step_time is None:
        return None
    direct = published.row.get("step_time_s") is not None
    source = f"{published.run.id}, {'published' if direct else 'from the published throughput'}"
    return Quantity(value=published.run.step_time, unit="s", provenance=Provenance.MEASURED, source=source)


def _source(before: Published, after: Published) -> Source:
    url = str(before.row.get("url") or "")
    return Source(
        text=plain(before.row.get("source", before.run.source), 300),
        url=url if url.startswith("https://") and " " not in url else None,
        rows=(before.run.id, after.run.id),
    )


def _kind(record: HistoryRecord) -> tuple:
    changed = [axis for axis in AXES if record.before and record.after and _axis_changed(record, axis)]
    return (record.hardware.chip, record.model.size_class, record.outcome, tuple(changed))


def _axis_changed(record: HistoryRecord, axis: Any) -> bool:
    return bool(record.before and record.after and record.before.degree(axis) != record.after.degree(axis))


def _plainness(record: HistoryRecord) -> tuple[int, float, str]:
    effect = max(record.speedup, 1 / record.speedup) if record.speedup else 2.0
    return len(record.other_changes), -effect, record.id
