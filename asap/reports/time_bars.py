"""Step time by kind, as it was measured and as it is expected: one bar per plan and provenance."""

from collections.abc import Iterator
from dataclasses import dataclass

from asap.core.units import Provenance
from asap.plans.axes import AXES
from asap.prediction.prediction import OPTIMIZER_ON_CPU, MemoryPrediction, Prediction
from asap.reports import phrases
from asap.reports.analysis import Analysis

COMPUTE, MIXED, HBM, COLLECTIVES = "compute", "compute and other", "waits for HBM", "collectives"
OPAQUE, TRANSFER, HOST = "custom calls without FLOPs", "copies with the host", "host"
BUBBLE, OPTIMIZER, OTHER, IDLE, UNLISTED = "pipeline bubble", "optimizer", "other", "idle", "not broken down"
KINDS = (
    *(COMPUTE, MIXED, HBM, COLLECTIVES, *(f"{COLLECTIVES} over {axis}" for axis in AXES)),
    *(OPAQUE, TRANSFER, HOST, BUBBLE, OPTIMIZER, OTHER, IDLE, UNLISTED),
)
"""Kinds of time in the order of the bars."""
_RESOURCES = {"hbm": HBM, "host_transfer": TRANSFER, "opaque": OPAQUE, "unknown": OTHER}
_PARTS = {"hbm": HBM, "host transfers": TRANSFER, OPTIMIZER_ON_CPU: OPTIMIZER}
"""Names of measured shares, and of parts of a prediction, that are not those of their kind."""
LEAST_SHARE = 0.0005
"""Of the step; what is shorter is not drawn."""


@dataclass(frozen=True)
class Segment:
    """A segment of a bar: its kind, what it is called, and how long it is (s, or a share where no step is known)."""

    kind: str
    name: str
    length: float


@dataclass(frozen=True)
class TimeBar:
    """One bar: whose step, how it is known, its segments, and the 90 % interval of a prediction."""

    label: str
    plan: str
    provenance: str
    segments: tuple[Segment, ...]
    low: float | None = None
    high: float | None = None
    total: float | None = None
    """The step that is predicted, from which the sum of the segments may differ by what is not drawn."""
    overlap: float = 1.0
    """What the measured times add up to, over the step: above 1 where operations overlap; they are drawn scaled."""
    memory: MemoryPrediction | None = None

    @property
    def length(self) -> float:
        """Of the whole bar."""
        return sum(segment.length for segment in self.segments)


def time_bars(analysis: Analysis) -> tuple[list[TimeBar], bool]:
    """All bars, top to bottom, and whether they are in seconds: else in shares of the window."""
    step, incumbent = analysis.kpis and analysis.kpis.step_time_s, analysis.incumbent
    predicted = [(f"proposal {one.rank}", one.prediction) for one in analysis.proposals]
    predicted = [(phrases.baseline(analysis), incumbent), *predicted] if incumbent else predicted
    bars = [_bar(label, one) for label, one in predicted if one.parts]
    in_seconds = bool(bars) or bool(step)
    measured = list(_measured(analysis, step if in_seconds else 1.0))
    if measured and incumbent and incumbent.parts:
        bars[0] = _bar(bars[0].label, incumbent, Provenance.MODELLED)
    return [*measured, *bars], in_seconds


def _measured(analysis: Analysis, scale: float | None) -> Iterator[TimeBar]:
    shares, plan = analysis.time_shares, str(analysis.experiment.plan or "")
    known = "stated" if analysis.experiment.stated else "measured"
    if not scale or analysis.kpis is None:
        return
    if shares is None:
        yield TimeBar("now", plan, known, (Segment(UNLISTED, "the whole step", scale),))
        return
    segments = [
        Segment(_RESOURCES.get(name, name), _RESOURCES.get(name, name), share)
        for name, share in shares.items()
        if name != "communication"
    ]
    segments += _collectives(analysis, shares.get("communication", 0.0))
    overlap = max(sum(segment.length for segment in segments), 1.0)
    segments.append(Segment(UNLISTED, "operations that are not listed", 1.0 - sum(one.length for one in segments)))
    memory = analysis.incumbent.memory if analysis.incumbent and not analysis.incumbent.parts else None
    yield TimeBar("now", plan, known, _ordered(segments, scale / overlap), overlap=overlap, memory=memory)


def _collectives(analysis: Analysis, total: float) -> list[Segment]:
    """Collectives by kind, and what has none; together where the kinds hold what waits for HBM by the roofline."""
    found = {one.kind: one.fraction for one in analysis.kpis.collectives} if analysis.kpis else {}
    rest = total - sum(found.values())
    found = {**found, COLLECTIVES: rest} if rest > -LEAST_SHARE else {COLLECTIVES: total}
    return [Segment(COLLECTIVES, kind, share) for kind, share in found.items()]


def _bar(label: str, prediction: Prediction, known: Provenance | None = None) -> TimeBar:
    step = prediction.step_time
    segments = [
        Segment(
            f"{COLLECTIVES} over {part.axis}" if part.axis else _PARTS.get(part.name, part.name),
            f"{part.name} over {part.axis}" if part.axis else part.name,
            part.exposed_s,
        )
        for part in prediction.parts
    ]
    return TimeBar(
        label,
        str(prediction.plan),
        (known or (step.provenance if step else Provenance.MODELLED)).value,
        _ordered(segments, 1.0),
        step.low if step else None,
        step.high if step else None,
        step.value if step else None,
        memory=prediction.memory,
    )


def _ordered(segments: list[Segment], scale: float) -> tuple[Segment, ...]:
    total = sum(segment.length for segment in segments) or 1.0
    kept = [
        Segment(s.kind if s.kind in KINDS else COLLECTIVES, s.name, s.length * scale)
        for s in segments
        if s.length / total > LEAST_SHARE
    ]
    return tuple(sorted(kept, key=lambda segment: (KINDS.index(segment.kind), -segment.length)))
