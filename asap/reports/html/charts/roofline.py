"""Operations under the roofline of their device: FLOP rate against operational intensity, both logarithmic."""

import math

from asap.core.text import plain
from asap.core.units import format_percent, format_rate, significant
from asap.profiles import Operation, Roofline
from asap.reports.html.charts.chart import INK, QUIET, WIDTH, Chart, draw, layer, palette, scale
from asap.reports.profile_facts import resource_name

_HEIGHT = 380
_MOST = 400
_LABELLED = 5
_LARGE = 0.15
"""Share of the time from which a point has the largest area."""
_CLOSE = 0.08
"""Of the logarithmic range; a name that would stand so close to another is left out."""
_NAME, _SHAPE = 80, 80
_COLOURS = {
    "compute": "var(--compute)",
    "HBM": "var(--hbm)",
    "on-chip memory": "var(--optimizer)",
    "host": "var(--host)",
    "collective": "var(--collective)",
    "not known": "var(--other)",
}


def roofline_chart(roofline: Roofline, operations: tuple[Operation, ...]) -> Chart | None:
    """The chart, or nothing where neither the roof nor the operations are known."""
    placed = [op for op in operations if op.flop_rate and op.bytes_accessed and op.flops]
    peak, bandwidth = roofline.peak_flop_rate, roofline.peak_hbm_bandwidth
    if not placed or not peak or not bandwidth:
        return None
    shown = placed[:_MOST]
    share, rest = sum(op.fraction for op in shown), sum(op.fraction for op in operations if op not in set(shown))
    note = f"The points take {format_percent(share)} of the time; their area is their share."
    if len(operations) > len(shown):
        others = f"{len(operations) - len(shown):,} others, {format_percent(rest)} of the time"
        note += f" Without FLOPs or HBM bytes, or too short, there is no point: {others}."
    return Chart(
        id="roofline",
        title="Roofline",
        summary=f"{len(shown)} operations below {format_rate(peak, 'FLOP/s')} and {format_rate(bandwidth, 'B/s')}. "
        + "; ".join(_text(op) for op in shown[:3])
        + ".",
        svg=draw(_spec(shown, peak, bandwidth)),
        columns=("operation", "bound", "share", "FLOP/byte", "rate", "of roofline"),
        rows=tuple(_row(op) for op in shown[:25]),
        note=note,
    )


def _spec(operations: list[Operation], peak: float, bandwidth: float) -> dict[str, object]:
    ridge = peak / bandwidth
    intensities = [_intensity(op) for op in operations]
    left, right = min(*intensities, ridge) / 2, max(*intensities, ridge) * 4
    rates = [op.flop_rate or 0.0 for op in operations]
    bottom, top = min(*rates, bandwidth * left) / 2, peak * 2.5
    bounds = [bound for bound in _COLOURS if any(_bound(op) == bound for op in operations)]
    x = scale("x", "FLOP per HBM byte", left, right, "log", values=_decades(left, right), format=".4~g")
    y = scale("y", "FLOP/s of a core", bottom, top, "log", values=_decades(bottom, top), format="~s")
    roof = [{"x": left, "y": bandwidth * left}, {"x": ridge, "y": peak}, {"x": right, "y": peak}]
    place = {"x": x, "y": y}
    ceiling = layer("line", roof, place, aria=False, color=INK, strokeWidth=2)
    middle = math.sqrt(left * ridge)
    named = [
        ({"x": right, "y": peak, "text": format_rate(peak, "FLOP/s")}, -10),
        ({"x": middle, "y": bandwidth * middle, "text": format_rate(bandwidth, "B/s")}, -8),
    ]
    said = {**place, "text": {"field": "text"}}
    words = [layer("text", [one], said, aria=False, color=QUIET, align="right", dx=-8, dy=dy) for one, dy in named]
    area = {"range": [24, 1600], "domain": [0, max(_LARGE, *(op.fraction for op in operations))]}
    look = {
        "size": {"field": "share", "type": "quantitative", "legend": None, "scale": area},
        "color": palette("bound", {bound: _COLOURS[bound] for bound in bounds}, symbolType="circle"),
        "description": {"field": "text"},
    }
    points = layer(
        "point", [_value(op) for op in operations], {**place, **look},
        filled=True, opacity=0.75, stroke="var(--card)", strokeWidth=0.7,
    )  # fmt: skip
    labels = layer(
        "text", [_value(op) for op in _apart(operations, right / left, top / bottom)[:_LABELLED]],
        {**place, "text": {"field": "name"}}, aria=False, align="left", dx=12, dy=8, fontSize=11,
    )  # fmt: skip
    return {"width": WIDTH + 120, "height": _HEIGHT, "layer": [ceiling, *words, points, labels]}


def _decades(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def _apart(operations: list[Operation], width: float, height: float) -> list[Operation]:
    """The operations, without those that stand where a longer one stands."""
    chosen: list[tuple[float, float]] = []
    found = []
    for op in operations:
        place = (math.log(_intensity(op), width), math.log(op.flop_rate or 1.0, height))
        if all(abs(place[0] - x) > 3 * _CLOSE or abs(place[1] - y) > _CLOSE for x, y in chosen):
            chosen.append(place)
            found.append(op)
    return found


def _value(op: Operation) -> dict[str, object]:
    return {
        "x": _intensity(op), "y": op.flop_rate, "share": op.fraction, "bound": _bound(op), "name": plain(op.name, 28),
        "text": _text(op),
    }  # fmt: skip


def _text(op: Operation) -> str:
    said = [plain(op.name, _NAME), plain(op.category, _NAME), plain(op.shape or "", _SHAPE)]
    said += [f"{format_percent(op.fraction)} of the time", format_rate(op.flop_rate or 0.0, "FLOP/s")]
    said += [f"{significant(_intensity(op))} FLOP/byte"]
    said += [f"{format_percent(op.roofline_efficiency)} of the roofline"] if op.roofline_efficiency is not None else []
    return "; ".join(part for part in said if part)


def _row(op: Operation) -> tuple[str, ...]:
    return (
        plain(op.name, _NAME),
        _bound(op),
        format_percent(op.fraction),
        significant(_intensity(op)),
        format_rate(op.flop_rate or 0.0, "FLOP/s"),
        "" if op.roofline_efficiency is None else format_percent(op.roofline_efficiency),
    )


def _bound(op: Operation) -> str:
    if op.is_collective:
        return "collective"
    return {"vmem": "on-chip memory", "unknown": "not known"}.get(op.bound) or resource_name(op.bound)


def _intensity(op: Operation) -> float:
    return (op.flops or 0.0) / (op.bytes_accessed or math.inf)
