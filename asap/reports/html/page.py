"""From an analysis and its study to the page: what is on it, put into the templates, closed to everything foreign."""

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from asap.core.errors import AsapError
from asap.core.text import plain, plain_lines
from asap.core.units import format_percent, format_seconds
from asap.reports import phrases, profile_facts, summary
from asap.reports.analysis import Analysis
from asap.reports.html.charts.composition import composition_chart
from asap.reports.html.charts.memory import memory_chart
from asap.reports.html.charts.plans import plans_chart
from asap.reports.html.charts.roofline import roofline_chart
from asap.reports.html.drawn_plans import drawn_plans
from asap.reports.html.mesh import CELL, mesh_panels
from asap.reports.html.operations import FIRST_ROWS, operation_table
from asap.reports.labels import flag_sentences
from asap.reports.proposal_table import order_sentence
from asap.reports.time_bars import time_bars
from asap.study.study import Study

_TEMPLATES = Path(__file__).parent / "templates"
_PRECEDENTS = 6


def render_page(analysis: Analysis, study: Study, log: Sequence[tuple[int, datetime, str, str]] = ()) -> str:
    """The report as HTML.

    Args:
        analysis: what is reported.
        study: the run behind it, with all of its operations.
        log: the steps of its session: number, time, kind, and what it was.

    Raises:
        UsageError: the extra ``html`` is not installed.
    """
    style, script = _asset("style.css"), _asset("script.js")
    operations = study.profile.operations if study.profile else ()
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            analysis=analysis, summary=summary.summary_of(analysis), order=order_sentence(analysis), study=study,
            flag_sentences=flag_sentences(analysis.flags) if analysis.flags else [], log=log,
            facts=summary.run_facts(analysis),
            kpis=profile_facts.kpi_facts(analysis.kpis) if analysis.kpis else [],
            composition=composition_chart(*time_bars(analysis)),
            plans=plans_chart(analysis, drawn_plans(analysis, study)),
            memory=memory_chart(analysis, study),
            panels=mesh_panels(analysis, study.slice), cell=CELL - 2,
            roofline=roofline_chart(analysis.roofline, operations) if analysis.roofline else None,
            operations=operation_table(operations), first_rows=FIRST_ROWS,
            extent=study.profile.extent if study.profile else "step",
            precedents=_precedents(study), phrases=phrases, style=Markup(style), script=Markup(script),
            policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
            "form-action 'none'",
        )
    )  # fmt: skip


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_clean,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"cell": _cell, "web": _web_address, "quantity": phrases.written, "pasted": _pasted}
    return environment


def _clean(value: Any) -> Any:
    """Every text that a template prints, without control and bidirectional characters; then it is escaped."""
    return value if isinstance(value, Markup | int | float) else plain(value)


def _pasted(text: str) -> Markup:
    """Lines to paste, cleaned and escaped, with the blanks before them: YAML nests by these."""
    return escape(plain_lines(text))


def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _precedents(study: Study) -> Sequence[Any]:
    from asap.proposals.selection.precedents import similar_runs

    try:
        return similar_runs(study, _PRECEDENTS)
    except AsapError:
        return []


def _cell(value: Any, kind: str) -> str:
    """A value of the table of operations as text; ``script.js`` writes it in the same way."""
    if value is None:
        return ""
    if kind == "percent":
        return format_percent(value, 2)
    if kind == "seconds":
        return format_seconds(value)
    return f"{value:.4g}" if kind == "number" else str(value)


def _web_address(address: str | None) -> str:
    """An address that a link may have; empty for any but https."""
    return address if address and address.startswith("https://") and plain(address) == address else ""
