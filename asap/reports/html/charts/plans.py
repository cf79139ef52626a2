"""Every plan that was predicted: step time against HBM, with the Pareto front, the plan that runs and the proposals.

Where HBM is not known, the distance from the plan that runs takes its place.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asap.core.units import GIB, format_bytes, format_seconds
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.passed_over import why_passed_over
from asap.reports import phrases
from asap.reports.analysis import Analysis
from asap.reports.html.charts.chart import INK, QUIET, WIDTH, Chart, draw, layer, palette, scale
from asap.reports.html.drawn_plans import DrawnPlans

_HEIGHT = 360
_MOST = 2000
_EDGE = 1.06
_CLOSE = 0.025
"""Of the width and height: points so near lie on each other."""
_WIDE = 3
_HIGHEST = 2.5
"""Capacities up to which HBM is drawn; what needs more stands at the edge."""
_SLOWEST = 8.0
"""Plans beyond so many times the fastest are not drawn, unless they run or are proposed."""
OTHER, TOO_LARGE, FRONT, PROPOSED, RUNS = "other plans", "do not fit", "Pareto front", "proposals", "runs now"
START = "start"
_LOOK = {
    OTHER: ("var(--other)", "circle", 34),
    TOO_LARGE: ("var(--bad)", "cross", 34),
    FRONT: ("var(--hbm)", "circle", 60),
    PROPOSED: ("var(--compute)", "diamond", 170),
    RUNS: ("var(--ink)", "square", 150),
    START: ("var(--ink)", "square", 150),
}

_BASELINES = {"now": RUNS, "start": START}
"""Kind of the point that proposals are compared with, by its label."""


@dataclass(frozen=True)
class _Point:
    plan: Plan
    seconds: float
    height: float
    kind: str
    text: str
    label: str = ""


def plans_chart(analysis: Analysis, drawn: DrawnPlans) -> Chart | None:
    """The chart, or nothing where no plan was predicted."""
    timed = [p for p in drawn.predictions if p.step_time is not None and _height(p) is not None]
    if len(timed) < 2:
        return None
    by_memory = timed[0].memory is not None
    fastest = min(_seconds(p) for p in timed)
    marked = [analysis.experiment.plan, *(proposal.plan for proposal in analysis.proposals)]
    near = [p for p in timed if _seconds(p) <= _SLOWEST * fastest or p.plan in marked]
    near = sorted(near, key=lambda p: (p.plan not in marked, _seconds(p)))[:_MOST]
    points = _points(analysis, near)
    ends = [one for one in points if one.kind in (FRONT, PROPOSED, RUNS, START)]
    other = "HBM" if by_memory else "distance from the plan that runs"
    faster = _faster_neighbour(analysis, timed)
    hidden = " Of plans that lie on each other one is drawn." if drawn.is_sample else ""
    hidden += " The slowest are left out." if len(near) < len(timed) else ""
    capacity = _capacity(near)
    if by_memory and capacity and any(one.height * GIB > _HIGHEST * capacity for one in points):
        hidden += " Those on the upper edge need more than the chart shows."
    return Chart(
        id="plans",
        title="Every valid plan",
        summary=f"{drawn.valid:,} plans by predicted step time and {other}; "
        + "; ".join(p.text for p in ends[:4])
        + ".",
        svg=draw(_spec(points, by_memory, capacity)),
        columns=("", "plan", "step time (90 % interval)", "HBM"),
        rows=tuple(_row(one, near) for one in sorted(ends, key=lambda one: one.seconds)),
        note=f"{drawn.valid:,} plans. On the Pareto front, no other plan is both faster and "
        + ("smaller." if by_memory else "nearer to what runs.")
        + hidden
        + faster,
    )


def _faster_neighbour(analysis: Analysis, predictions: Sequence[Prediction]) -> str:
    """The fastest plan that fits, where it is faster than every proposal, and why it is not one."""
    proposed = [one.prediction for one in analysis.proposals if one.prediction.step_time is not None]
    fitting = [one for one in predictions if _fits(one)]
    if not proposed or not fitting:
        return ""
    fastest, first = min(fitting, key=_seconds), proposed[0]
    if any(_seconds(fastest) >= _seconds(one) for one in proposed):
        return ""
    why = why_passed_over(fastest, first, analysis.experiment.plan)
    return f" {fastest.plan} is faster ({format_seconds(_seconds(fastest))}) and not proposed: {why}."


def _points(analysis: Analysis, predictions: Sequence[Prediction]) -> list[_Point]:
    front = pareto_front([(_seconds(p), _height(p) or 0.0) for p in predictions if _fits(p)])
    ranks = {proposal.plan: str(proposal.rank) for proposal in analysis.proposals}
    found = []
    for prediction in predictions:
        place = (_seconds(prediction), _height(prediction) or 0.0)
        baseline = phrases.baseline(analysis)
        label = baseline if prediction.plan == analysis.experiment.plan else ranks.get(prediction.plan, "")
        kind = FRONT if _fits(prediction) and place in front else OTHER if _fits(prediction) else TOO_LARGE
        kind = _BASELINES.get(label) or (PROPOSED if label else kind)
        said = f"{prediction.plan}; {phrases.written(prediction.step_time)}; {phrases.memory_phrase(prediction)}"
        name = f"{kind}; " if label in _BASELINES else f"proposal {label}; " if label else ""
        found.append(_Point(prediction.plan, *place, kind, name + said.replace("; unknown", ""), label))
    return sorted(found, key=lambda one: list(_LOOK).index(one.kind))


def pareto_front(places: Sequence[tuple[float, float]]) -> set[tuple[float, float]]:
    """Those of which no other is smaller in one coordinate without being larger in the other."""
    front, least = set(), float("inf")
    for seconds, height in sorted(set(places)):
        if height < least:
            front.add((seconds, height))
            least = height
    return front


def _spec(points: list[_Point], by_memory: bool, capacity: float | None) -> dict[str, object]:
    looks = {kind: look for kind, look in _LOOK.items() if any(one.kind == kind for one in points)}
    fast, slow = min(one.seconds for one in points), max(one.seconds for one in points)
    kind = "log" if slow > _WIDE * fast else "linear"
    x = scale("x", "predicted step time, s", fast / _EDGE, slow * _EDGE, kind, format=".4~g")
    limit_gib = capacity / GIB if capacity else None
    highest = max([one.height for one in points] + ([limit_gib] if limit_gib else [])) * _EDGE
    title = "HBM of a device, GiB" if by_memory else "doublings that the mesh moves"
    top = min(highest, _HIGHEST * limit_gib) if limit_gib else highest or 1
    y = scale("y", title, 0, top) if by_memory else scale("y", title, 0, top, tickMinStep=1, format="d")
    values = [
        {"x": p.seconds, "y": p.height, "kind": p.kind, "text": p.text, "label": p.label, "size": _LOOK[p.kind][2]}
        for p in points
    ]
    look = {
        "color": palette("kind", {kind: colour for kind, (colour, _, _) in looks.items()}),
        "shape": palette("kind", {kind: shape for kind, (_, shape, _) in looks.items()}),
        "size": {"field": "size", "type": "quantitative", "scale": None},
        "description": {"field": "text"},
    }
    scatter = layer("point", values, {"x": x, "y": y, **look}, filled=True, opacity=0.8)
    line = layer(
        "line", _front_line(points), {"x": x, "y": y},
        aria=False, interpolate="step-after", color="var(--hbm)", strokeWidth=1.2, opacity=0.7,
    )  # fmt: skip
    at_limit = [{"y": limit_gib, "text": "capacity"}] if limit_gib else []
    said = {"value": f"capacity; {format_bytes(capacity or 0)}"}
    limit = layer("rule", at_limit, {"y": y, "description": said}, color=INK, strokeDash=[6, 4])
    texts = {"aria": False, "align": "left"}
    words = layer(
        "text", _labels(points, slow / fast, highest), {"x": x, "y": y, "text": {"field": "label"}},
        dx=10, dy=-9, fontWeight="bold", **texts,
    )  # fmt: skip
    name = layer(
        "text", at_limit, {"y": y, "text": {"field": "text"}}, baseline="bottom", color=QUIET, x=4, dy=-4, **texts
    )
    return {"width": WIDTH + 120, "height": _HEIGHT, "layer": [line, limit, name, scatter, words]}


def _labels(points: list[_Point], width: float, height: float) -> list[dict[str, object]]:
    """Labels of the marked points; those of points that lie on each other are joined."""
    groups: list[tuple[_Point, list[str]]] = []
    for point in sorted((one for one in points if one.label), key=lambda one: one.label):
        for first, names in groups:
            across = math.log(point.seconds / first.seconds) / math.log(max(width, 1 + _CLOSE))
            if abs(across) < _CLOSE and abs(point.height - first.height) < _CLOSE * height:
                names.append(point.label)
                break
        else:
            groups.append((point, [point.label]))
    return [{"x": point.seconds, "y": point.height, "label": ", ".join(names)} for point, names in groups]


def _front_line(points: list[_Point]) -> list[dict[str, float]]:
    front = pareto_front([(one.seconds, one.height) for one in points if one.kind != TOO_LARGE])
    return [{"x": seconds, "y": height} for seconds, height in sorted(front)]


def _row(point: _Point, predictions: Sequence[Prediction]) -> tuple[str, ...]:
    found = next(p for p in predictions if p.plan == point.plan)
    name = ({"": point.kind} | _BASELINES).get(point.label, f"proposal {point.label}")
    return (name, str(point.plan), phrases.written(found.step_time), phrases.memory_phrase(found))


def _seconds(prediction: Prediction) -> float:
    return prediction.step_time.value if prediction.step_time else float("inf")


def _height(prediction: Prediction) -> float | None:
    return prediction.memory.total.value / GIB if prediction.memory else prediction.doublings


def _fits(prediction: Prediction) -> bool:
    return prediction.memory is None or prediction.memory.fits


def _capacity(predictions: Sequence[Prediction]) -> float | None:
    return next((p.memory.capacity_bytes for p in predictions if p.memory), None)
