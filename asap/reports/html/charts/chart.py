"""A chart of the report: a drawing with its text alternative and the figures behind it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from asap.core.errors import UsageError, extra_hint
from asap.plans.axes import AXES
from asap.reports import time_bars as kinds

WIDTH = 680
"""Of the plotting area, in the units of the drawing; the page scales it."""

INK, QUIET, GRID = "var(--ink)", "var(--quiet)", "var(--grid)"
_FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
"""Fonts of the same widths, so that texts keep the place that was measured for them."""
_WIDEST_LETTER = 8.0
"""Of a text of 12 points, on average, where none of these fonts is there and DejaVu Sans is taken."""
_CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": QUIET, "gridColor": GRID, "domainColor": QUIET, "tickColor": GRID,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 320, "titlePadding": 8,
    },
    "legend": {
        "labelColor": INK, "titleColor": QUIET, "labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 0,
        "orient": "top", "title": None, "columnPadding": 20, "labelLimit": 260, "symbolOpacity": 1,
    },
    "text": {"color": INK, "fontSize": 12},
}  # fmt: skip


def scale(field: str, title: str, low: float, high: float, kind: str = "linear", **axis: Any) -> dict[str, Any]:
    """A position: the field, the words at its axis, and the range that is drawn. ``axis`` is Vega-Lite's."""
    return {
        "field": field,
        "type": "quantitative",
        "axis": {"title": title, "tickCount": 8, **axis},
        "scale": {"type": kind, "domain": [low, high], "nice": False, "clamp": True},
    }


def names(labels: Iterable[str], **axis: Any) -> dict[str, Any]:
    """The axis of what bars are called, with room for them in a wider font than that which they are measured in."""
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    return {"domain": False, "ticks": False, "minExtent": longest * _WIDEST_LETTER, **axis}


def palette(field: str, looks: Mapping[str, str], **legend: Any) -> dict[str, Any]:
    """A colour or shape for each value of a field, in the order of ``looks``; ``legend`` is Vega-Lite's."""
    domain = {"domain": list(looks), "range": list(looks.values())}
    return {"field": field, "type": "nominal", "scale": domain, "legend": legend}


def layer(mark: str, values: Sequence[Mapping[str, Any]], encoding: Mapping[str, Any], **look: Any) -> dict[str, Any]:
    """One layer of a drawing: ``values`` drawn as a mark by their ``encoding``. ``look`` is Vega-Lite's of the mark."""
    return {"mark": {"type": mark, **look}, "data": {"values": values}, "encoding": encoding}


@dataclass(frozen=True)
class Chart:
    """A drawing, the sentence that says what it shows, and its figures as a table."""

    id: str
    title: str
    summary: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def draw(spec: Mapping[str, Any]) -> Markup:
    """A Vega-Lite specification as SVG; every text in it is escaped. Colours may be variables of the page's style.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise UsageError("the charts of an HTML report need the extra html", hint=extra_hint("html")) from None
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **spec}
    return Markup(vl_convert.vegalite_to_svg(whole))


TIME_COLOURS: dict[str, str] = {
    kinds.COMPUTE: "var(--compute)",
    kinds.MIXED: "var(--mixed)",
    kinds.HBM: "var(--hbm)",
    kinds.COLLECTIVES: "var(--collective)",
    **{f"{kinds.COLLECTIVES} over {axis}": f"var(--axis-{axis})" for axis in AXES},
    kinds.OPAQUE: "var(--opaque)",
    kinds.TRANSFER: "var(--transfer)",
    kinds.HOST: "var(--host)",
    kinds.BUBBLE: "var(--bubble)",
    kinds.OPTIMIZER: "var(--optimizer)",
    kinds.OTHER: "var(--other)",
    kinds.IDLE: "var(--idle)",
    kinds.UNLISTED: "var(--unlisted)",
}

MEMORY_COLOURS: dict[str, str] = {
    "parameters": "var(--compute)",
    "gradients": "var(--hbm)",
    "optimizer": "var(--optimizer)",
    "activations": "var(--collective)",
    "attention": "var(--axis-model)",
    "temporaries": "var(--opaque)",
    "collectives": "var(--axis-replica)",
    "allocator": "var(--axis-seq)",
    "in use": "var(--other)",
}
"""Kinds of memory in the order of the bars; a kind that is not here is drawn as the last."""
