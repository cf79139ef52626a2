"""HBM of the fullest device against its capacity: a bar for what was measured, and one for each plan."""

from collections.abc import Iterator
from dataclasses import dataclass

from asap.core.units import GIB, format_bytes
from asap.prediction.prediction import MemoryPrediction
from asap.reports import phrases
from asap.reports.analysis import Analysis
from asap.reports.html.charts.chart import INK, MEMORY_COLOURS, WIDTH, Chart, draw, layer, names, palette, scale
from asap.study.study import Study

_BAR, _GAP = 22, 18
_FAR = 2.0
_IN_USE = "in use"


@dataclass(frozen=True)
class _MemoryBar:
    label: str
    provenance: str
    parts: tuple[tuple[str, float], ...]
    verdict: str

    @property
    def total(self) -> float:
        return sum(size for _, size in self.parts)

    @property
    def title(self) -> str:
        return f"{self.label}, {self.provenance}"


def memory_chart(analysis: Analysis, study: Study) -> Chart | None:
    """The chart, or nothing where no use of HBM is known."""
    bars = [*_measured(study), *_predicted(analysis)]
    capacity = _capacity(analysis, study)
    if not bars:
        return None
    limit = f" Capacity: {format_bytes(capacity)}." if capacity else ""
    sizes = (
        f"{bar.title}: {format_bytes(bar.total)}{'' if bar.verdict == 'fits' else f', {bar.verdict}'}" for bar in bars
    )
    return Chart(
        id="memory",
        title="HBM of a device",
        summary="; ".join(sizes) + "." + limit,
        svg=draw(_spec(bars, capacity)),
        columns=("plan", "known", "part", "size"),
        rows=tuple((bar.label, bar.provenance, name, format_bytes(size)) for bar in bars for name, size in bar.parts),
        note=f"The line is the capacity of a device, {format_bytes(capacity)}." if capacity else "",
    )


def _measured(study: Study) -> Iterator[_MemoryBar]:
    profile = study.profile
    if profile is not None and profile.peak_hbm_bytes:
        yield _MemoryBar("now", profile.provenance, ((_IN_USE, profile.peak_hbm_bytes),), "fits")


def _predicted(analysis: Analysis) -> Iterator[_MemoryBar]:
    if analysis.incumbent is not None and analysis.incumbent.memory is not None:
        yield _bar(phrases.baseline(analysis), analysis.incumbent.memory)
    for proposal in analysis.proposals:
        if proposal.prediction.memory is not None:
            yield _bar(f"proposal {proposal.rank}", proposal.prediction.memory)


def _bar(label: str, memory: MemoryPrediction) -> _MemoryBar:
    parts = tuple((part.name, part.size_bytes) for part in memory.parts) or ((_IN_USE, memory.total.value),)
    return _MemoryBar(label, memory.total.provenance.value, parts, memory.verdict)


def _capacity(analysis: Analysis, study: Study) -> float | None:
    if analysis.incumbent is not None and analysis.incumbent.memory is not None:
        return analysis.incumbent.memory.capacity_bytes
    found = (p.prediction.memory.capacity_bytes for p in analysis.proposals if p.prediction.memory)
    return next(found, study.profile.hbm_capacity_bytes if study.profile else None)


def _spec(bars: list[_MemoryBar], capacity: float | None) -> dict[str, object]:
    most = max(bar.total for bar in bars)
    reach = max(most, min(capacity or most, _FAR * most)) / GIB * 1.02
    labels = [bar.title for bar in bars]
    colours = {name: MEMORY_COLOURS.get(name, "var(--other)") for bar in bars for name, _ in bar.parts}
    x = scale("start", "GiB", 0, reach)
    axis = names(labels, grid=False, labelPadding=10)
    look = {
        "y": {"field": "bar", "type": "nominal", "sort": labels, "title": None, "axis": axis},
        "color": palette("part", colours, columns=4),
        "opacity": {"field": "solid", "type": "quantitative", "scale": None},
        "description": {"field": "text"},
    }
    values = [value for one in bars for value in _values(one)]
    bar = layer(
        "bar", values, {"x": x, "x2": {"field": "end"}, **look}, height=_BAR, stroke="var(--card)", strokeWidth=1
    )
    limit = [{"start": capacity / GIB}] if capacity and capacity / GIB <= reach else []
    said = {"value": f"capacity; {format_bytes(capacity or 0)}"}
    line = layer("rule", limit, {"x": x, "description": said}, color=INK, strokeWidth=2, strokeDash=[6, 4])
    return {"width": WIDTH, "height": {"step": _BAR + _GAP}, "layer": [bar, line]}


def _values(bar: _MemoryBar) -> Iterator[dict[str, object]]:
    start = 0.0
    for name, size in bar.parts:
        end = start + size / GIB
        yield {
            "bar": bar.title, "part": name, "start": start, "end": end,
            "solid": 0.72 if bar.provenance == "modelled" else 1, "text": f"{bar.title}; {name}; {format_bytes(size)}",
        }  # fmt: skip
        start = end
