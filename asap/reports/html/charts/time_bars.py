"""Step time by kind, as it was measured and as it is expected: one bar per plan and provenance."""

from collections.abc import Iterator
from dataclasses import dataclass

from asap.prediction.prediction import OPTIMIZER_ON_CPU, Prediction, TimePart
from asap.profiles import Profile
from asap.reports import phrases
from asap.reports.analysis import Analysis
from asap.reports.html.charts import chart
from asap.study.study import Study

_RESOURCES = {
    "compute": chart.COMPUTE,
    "hbm": chart.HBM,
    "host_transfer": chart.TRANSFER,
    "host": chart.HOST,
    "opaque": chart.OPAQUE,
    "unknown": chart.OTHER,
}
_PARTS = {
    "compute": chart.COMPUTE,
    "compute and other": chart.MIXED,
    "hbm": chart.HBM,
    "host": chart.HOST,
    "pipeline bubble": chart.BUBBLE,
    **dict.fromkeys(("optimizer", OPTIMIZER_ON_CPU), chart.OPTIMIZER),
    "other": chart.OTHER,
}
LEAST_SHARE = 0.0005
"""Of the step; what is shorter is not drawn."""


@dataclass(frozen=True)
class Segment:
    """A stretch of a bar: its kind, what it is called, and how long it is (s, or a share where no step is known)."""

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

    @property
    def length(self) -> float:
        """Of the whole bar."""
        return sum(segment.length for segment in self.segments)


def time_bars(analysis: Analysis, study: Study) -> tuple[list[TimeBar], bool]:
    """All bars, top to bottom, and whether they are in seconds: else in shares of the window."""
    predicted = list(_predicted(analysis))
    step = study.profile.kpis.step_time_s if study.profile else None
    in_seconds = bool(predicted) or (step is not None and study.profile is not None and study.profile.extent == "step")
    measured = list(_measured(study, step if in_seconds else 1.0))
    return [*measured, *predicted], in_seconds


def _measured(study: Study, scale: float | None) -> Iterator[TimeBar]:
    profile, shares = study.profile, study.shares
    if profile is None or shares is None or not scale:
        return
    plan = str(study.plan) if study.plan else ""
    if not profile.operations:
        yield TimeBar("now", plan, profile.provenance, (Segment(chart.UNLISTED, "the whole step", scale),))
        return
    segments = [Segment(_RESOURCES[name], _RESOURCES[name], shares.time[name]) for name in _RESOURCES]
    segments += _collectives(profile, shares.time["communication"])
    segments += [Segment(chart.IDLE, chart.IDLE, shares.idle)] if shares.idle else []
    overlap = max(sum(segment.length for segment in segments), 1.0)
    if (rest := 1.0 - sum(segment.length for segment in segments)) > LEAST_SHARE:
        segments.append(Segment(chart.UNLISTED, "operations that are not listed", rest))
    yield TimeBar("now", plan, profile.provenance, _ordered(segments, scale / overlap), overlap=overlap)


def _collectives(profile: Profile, total: float) -> list[Segment]:
    """Collectives by kind; what has no kind, or waits for HBM by the roofline, is in no kind's segment."""
    waiting = [op for op in profile.operations if op.is_collective]
    found: dict[str, float] = {}
    for operation in waiting:
        kind = operation.collective or "waiting for collectives"
        found[kind] = found.get(kind, 0.0) + operation.fraction
    if sum(found.values()) > total + LEAST_SHARE:
        found = {"collectives": total}
    return [Segment(chart.UNKNOWN_AXIS, kind, share) for kind, share in found.items()]


def _predicted(analysis: Analysis) -> Iterator[TimeBar]:
    if analysis.incumbent is not None and analysis.incumbent.parts:
        yield _bar(phrases.baseline(analysis), analysis.incumbent)
    for proposal in analysis.proposals:
        if proposal.prediction.parts:
            yield _bar(f"proposal {proposal.rank}", proposal.prediction)


def _bar(label: str, prediction: Prediction) -> TimeBar:
    step = prediction.step_time
    segments = [Segment(_kind(part), _name(part), part.exposed_s) for part in prediction.parts]
    return TimeBar(
        label,
        str(prediction.plan),
        step.provenance.value if step else "modelled",
        _ordered(segments, 1.0),
        step.low if step else None,
        step.high if step else None,
        step.value if step else None,
    )


def _kind(part: TimePart) -> str:
    return _PARTS.get(part.name) or chart.collectives_over(part.axis)


def _name(part: TimePart) -> str:
    return f"{part.name} over {part.axis}" if part.axis else part.name


def _ordered(segments: list[Segment], scale: float) -> tuple[Segment, ...]:
    order = list(chart.TIME_COLOURS)
    total = sum(segment.length for segment in segments) or 1.0
    kept = [Segment(s.kind, s.name, s.length * scale) for s in segments if s.length / total > LEAST_SHARE]
    return tuple(sorted(kept, key=lambda segment: (order.index(segment.kind), -segment.length)))
