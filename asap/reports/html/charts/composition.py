"""What a step is made of: a bar for the measured step, and one for each plan that is predicted."""

from asap.core.units import format_percent, format_seconds
from asap.reports.html.charts.chart import INK, QUIET, TIME_COLOURS, WIDTH, Chart, draw, layer, names, palette, scale
from asap.reports.time_bars import IDLE, UNLISTED, Segment, TimeBar

_BAR, _GAP = 26, 24
_LONGEST_PLAN = 36
_OVERLAP = 0.005
_FAINT = " || ".join(f"datum.kind === '{kind}'" for kind in (IDLE, UNLISTED))
"""Kinds too pale to be seen without an outline."""
_OUTLINES = [{"test": _FAINT, "value": QUIET}, {"test": "datum.solid === 1", "value": "var(--card)"}]
"""Of what is not modelled: there, the outline has the colour itself."""
_FAR = 1.6
"""Intervals are drawn up to so many times the longest bar."""


def composition_chart(bars: list[TimeBar], in_seconds: bool) -> Chart | None:
    """The chart, or nothing where no step is known."""
    if not bars:
        return None
    unit = "of the step" if in_seconds else "of the window"
    return Chart(
        id="composition",
        title="What the step is made of" if in_seconds else "What the window is made of",
        summary="; ".join(_sentence(bar, in_seconds) for bar in bars) + ".",
        svg=draw(_spec(bars, in_seconds)),
        columns=("plan", "known", "part", "time" if in_seconds else "share", unit),
        rows=tuple(_row(bar, segment, in_seconds) for bar in bars for segment in bar.segments),
        note=_note(bars, _reach(bars)),
    )


def _spec(bars: list[TimeBar], in_seconds: bool) -> dict[str, object]:
    reach = _reach(bars)
    kinds = [kind for kind in TIME_COLOURS if any(s.kind == kind for bar in bars for s in bar.segments)]
    labels = [_label(bar) for bar in bars]
    y = {
        "field": "bar", "type": "nominal", "sort": labels, "title": None,
        "axis": names(labels, labelExpr="split(datum.label, '\\n')", labelPadding=10),
        "scale": {"paddingInner": _GAP / (_BAR + _GAP), "paddingOuter": 0.2},
    }  # fmt: skip
    x = _position(reach, in_seconds)
    fill = palette("kind", {kind: TIME_COLOURS[kind] for kind in kinds}, columns=4)
    look = {
        "fill": fill,
        "stroke": {**fill, "legend": None, "condition": _OUTLINES},
        "fillOpacity": {"field": "solid", "type": "quantitative", "scale": None},
        "description": {"field": "text"},
    }
    values = [value for one in bars for value in _values(one, in_seconds)]
    bar = layer("bar", values, {"y": y, "x": x, "x2": {"field": "end"}, **look}, height=_BAR, strokeWidth=1)
    uncertain = [_interval(one, in_seconds) for one in bars if one.low and one.high and one.low != one.high]
    ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}, "description": {"field": "text"}}
    width = layer("rule", uncertain, {"y": y, **ends}, color=INK, strokeWidth=1.5)
    total = layer(
        "text", [{"bar": _label(one), "text": _total(one, in_seconds), "x": 0} for one in bars],
        {"y": y, "x": {"field": "x", "type": "quantitative"}, "text": {"field": "text"}},
        aria=False, align="left", dx=4, dy=-_BAR / 2 - 7, color=QUIET, fontSize=11,
    )  # fmt: skip
    return {"width": WIDTH, "height": {"step": _BAR + _GAP}, "layer": [bar, width, total]}


def _values(bar: TimeBar, in_seconds: bool) -> list[dict[str, object]]:
    values, start = [], 0.0
    for segment in bar.segments:
        end = start + segment.length
        solid = 0.6 if bar.provenance == "modelled" else 1
        text = f"{_title(bar)}; {segment.name}; {_amount(segment, bar, in_seconds)}"
        values.append(
            {"bar": _label(bar), "kind": segment.kind, "start": start, "end": end, "solid": solid, "text": text}
        )
        start = end
    return values


def _interval(bar: TimeBar, in_seconds: bool) -> dict[str, object]:
    low, high = bar.low or 0.0, bar.high or 0.0
    text = f"{_title(bar)}; 90 % interval: {_size(low, in_seconds)} to {_size(high, in_seconds)}"
    return {"bar": _label(bar), "low": low, "high": high, "text": text}


def _label(bar: TimeBar) -> str:
    plan = bar.plan if len(bar.plan) <= _LONGEST_PLAN else bar.plan[: _LONGEST_PLAN - 1] + "…"
    return f"{_title(bar)}\n{plan}" if plan else _title(bar)


def _title(bar: TimeBar) -> str:
    return f"{bar.label}, {bar.provenance}"


def _total(bar: TimeBar, in_seconds: bool) -> str:
    if not in_seconds:
        return ""
    between = f" ({format_seconds(bar.low)} to {format_seconds(bar.high)})" if bar.low and bar.high else ""
    return format_seconds(bar.total or bar.length) + (between if bar.low != bar.high else "")


def _sentence(bar: TimeBar, in_seconds: bool) -> str:
    parts = ", ".join(f"{s.name} {_share(s, bar)}" for s in sorted(bar.segments, key=lambda s: -s.length)[:3])
    whole = f" {format_seconds(bar.total or bar.length)}:" if in_seconds else ":"
    return f"{_title(bar)}{whole} {parts}"


def _row(bar: TimeBar, segment: Segment, in_seconds: bool) -> tuple[str, ...]:
    return (bar.label, bar.provenance, segment.name, _size(segment.length, in_seconds), _share(segment, bar))


def _amount(segment: Segment, bar: TimeBar, in_seconds: bool) -> str:
    return f"{format_seconds(segment.length)}, {_share(segment, bar)}" if in_seconds else format_percent(segment.length)


def _share(segment: Segment, bar: TimeBar) -> str:
    return format_percent(segment.length / bar.length)


def _size(length: float, in_seconds: bool) -> str:
    return format_seconds(length) if in_seconds else format_percent(length)


def _position(reach: float, in_seconds: bool) -> dict[str, object]:
    if not in_seconds:
        return scale("start", "share", 0, reach, format="%")
    if reach >= 1:
        return scale("start", "seconds per step", 0, reach, format=".4~g")
    return scale("start", "milliseconds per step", 0, reach, labelExpr="format(datum.value * 1000, '.4~g')")


def _reach(bars: list[TimeBar]) -> float:
    """Where the axis ends."""
    longest = max(bar.length for bar in bars)
    return max([longest, *(min(bar.high, _FAR * longest) for bar in bars if bar.high)])


def _note(bars: list[TimeBar], reach: float) -> str:
    shown = {bar.provenance for bar in bars}
    said = (
        ["Solid bars are measured, stated or compiled; pale ones with an outline are modelled."]
        if "modelled" in shown
        else []
    )
    said += ["Thin lines are 90 % intervals."] if any(bar.high and bar.high != bar.low for bar in bars) else []
    said += (
        ["Those that end at the right edge go on beyond it."] if any((bar.high or 0) > reach for bar in bars) else []
    )
    if any(bar.overlap > 1 + _OVERLAP for bar in bars):
        said.append("The measured operations overlap, so their times are scaled to the step.")
    said += ["Of collectives that other work hides, only what is exposed is drawn."] if "modelled" in shown else []
    return " ".join(said)
