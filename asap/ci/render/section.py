"""One configuration in a comment: its figures before and after, and text that cannot mention or link."""

import re
from collections.abc import Iterable

from asap.ci.report import CiReport, ConfigurationReport, Level, PolicyFinding, PredictionSummary, Side, Suggestion
from asap.core.secrets import redacted
from asap.core.text import markdown, plain
from asap.core.units import format_bytes
from asap.reports.phrases import percent_change, written
from asap.reports.profile_facts import UNKNOWN

_ZERO_WIDTH_SPACE = "&#8203;"
_SIGNS = re.compile(r"&#(?:64|35|58);")
_BLANKS = re.compile(r"([ \t]+)")
_WWW = re.compile(r"(?i)\bwww(?=\.)")


def prose(text: object, limit: int | None = None) -> str:
    """One line that GitHub shows as it is: no markup, no HTML, no link, no mention, no reference to an issue."""
    escaped = _SIGNS.sub(lambda sign: sign.group() + _ZERO_WIDTH_SPACE, markdown(redacted(str(text)), limit))
    return _WWW.sub(lambda word: word.group() + _ZERO_WIDTH_SPACE, escaped)


def fence(text: str, language: str = "") -> str:
    """A code block that its content cannot close."""
    lines = [code(line) for line in redacted(text).splitlines()]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return "\n".join([f"{ticks}{language}", *lines, ticks])


def listing(lines: Iterable[str]) -> str:
    """A list of lines that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of plain texts."""
    lines = [tuple(map(prose, head)), tuple("---" for _ in head), *(tuple(prose(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(line: str) -> str:
    """A line with its blanks, without invisible characters."""
    return "".join(part if part.isspace() else plain(part) for part in _BLANKS.split(line))


_DESCRIPTIONS = ("plan", "batch", "model", "hardware")
_HBM = "hbm"
_FIGURES = {
    "step time": "step_time", "tokens/s": "tokens_per_second", "MFU": "mfu", "HBM per device": _HBM,
    "chip time of 10⁹ tokens": "chip_hours", "price of a day": "money_per_day", "price of 10⁹ tokens": "money",
}  # fmt: skip
Row = tuple[str, ...]


def facts_table(report: ConfigurationReport) -> tuple[Row, list[Row]]:
    """Head and rows of what is known of each readable side, without what :func:`unchanged` lists."""
    sides = _readable(report)
    rows = [row for row in _descriptions(sides) if not _is_same(row)]
    rows += [
        (label, *(_figure(side.prediction, field) for side in sides.values())) for label, field in _FIGURES.items()
    ]
    return ("", *sides), [row for row in rows if set(row[1:]) - {UNKNOWN}]


def _figure(prediction: PredictionSummary | None, field: str) -> str:
    found = written(getattr(prediction, field), brief=True) if prediction and field != _HBM else hbm_use(prediction)
    return found or UNKNOWN


def unchanged(report: ConfigurationReport) -> str:
    """What both sides have in common: ``model llama3.1-70b, 80 layers; hardware v5p-512``."""
    rows = _descriptions(_readable(report))
    return "; ".join(f"{row[0]} {row[1]}" for row in rows if _is_same(row) and row[1] != UNKNOWN)


def hbm_use(prediction: PredictionSummary | None) -> str:
    """``30.2 GiB of 95 GiB``."""
    if prediction is None or prediction.hbm is None:
        return UNKNOWN
    capacity = f" of {format_bytes(prediction.hbm_capacity)}" if prediction.hbm_capacity else ""
    return format_bytes(prediction.hbm.value) + capacity


def _readable(report: ConfigurationReport) -> dict[str, Side]:
    sides = {"before": report.before, "after": report.after}
    return {name: side for name, side in sides.items() if side is not None and side.problem is None}


def _descriptions(sides: dict[str, Side]) -> list[Row]:
    return [(name, *(getattr(side, name) or UNKNOWN for side in sides.values())) for name in _DESCRIPTIONS]


def _is_same(row: Row) -> bool:
    return len(row) > 2 and len(set(row[1:])) == 1


VERDICTS: dict[Level, str] = {"error": "Fails", "warning": "Warning", "note": "Note"}
SEVERITY: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}


def section(report: CiReport, one: ConfigurationReport, whole: bool) -> str:
    """Everything about a configuration, or, if not ``whole``, its figures and findings.

    If there are several, those without a finding are collapsed.
    """
    found = findings_of(report, one)
    findings = [f"**{VERDICTS[finding.level]}**: {prose(finding.message)}" for finding in found]
    parts = [listing([*findings, *_facts(one, any(finding.rule == "repeated_failure" for finding in found))])]
    head, rows = facts_table(one)
    if rows:
        parts.append(table(head, rows))
    if whole:
        changes = [(c.what, c.before, c.after) for c in one.changes if c.what not in _DESCRIPTIONS]
        parts.append(table(("setting", "before", "after"), changes) if changes else "")
        parts.append(_proposals(one))
        parts.append(listing(prose(note) for note in one.notes))
    text = "\n\n".join(part for part in parts if part)
    moved = f", was {prose(one.previous_path)}" if one.previous_path else ""
    title = f"{prose(one.path)} ({one.status}{moved})"
    if findings or len(report.configurations) == 1:
        return f"### {title}\n\n{text}"
    return collapsed(f"<b>{title}</b>", text)


def findings_of(report: CiReport, one: ConfigurationReport) -> list[PolicyFinding]:
    """The findings about a configuration, worst first."""
    found = [finding for finding in report.findings if finding.path == one.path]
    return sorted(found, key=lambda finding: SEVERITY[finding.level])


def collapsed(summary: str, text: str) -> str:
    """Markdown that is collapsed until it is clicked."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _facts(one: ConfigurationReport, precedent_shown: bool) -> list[str]:
    facts = []
    if one.relative_cost is not None:
        facts.append(f"Chip time per token: {prose(percent_change(one.relative_cost))}.")
    if one.precedent is not None and not precedent_shown:
        title = f"{prose(one.precedent.title)} ({prose(one.precedent.id)})"
        facts.append(f"Precedent: {title}. {prose(one.precedent.supports)}")
    if one.not_checked and one.after and not one.after.problem:
        facts.append(f"Not checked: {prose(one.not_checked)}.")
    elif same := unchanged(one):
        facts.append(f"Unchanged: {prose(same)}.")
    if one.experiment:
        side = one.after or one.before
        used = side and side.prediction and side.prediction.from_profile
        how = "the prediction starts from what it measured" if used else "not used, as more than the plan differs"
        facts.append(f"Linked experiment {prose(one.experiment)}: {how}.")
    if one.before and one.before.problem:
        facts.append(f"Could not be read before the change: {prose(one.before.problem)}")
    return facts


def _proposals(one: ConfigurationReport) -> str:
    """What to do with its change, now and the proposals, why; then the change for each proposal."""
    shown = next((each for each in one.suggestions if each.lines == one.lines), None)
    parts = [prose(one.recommendation or "")]
    parts.append(_change(shown) if shown else fence(one.lines) if one.lines else "")
    parts += [table(one.plans[0], one.plans[1:])] if one.plans[1:] else []
    parts.append(listing(map(prose, one.why)))
    details = [_suggestion(number, suggestion) for number, suggestion in enumerate(one.suggestions, 1)]
    parts += [collapsed("Each proposal", "\n\n".join(details))] if details else []
    return "\n\n".join(part for part in parts if part)


def _change(suggestion: Suggestion) -> str:
    change = fence(suggestion.diff, "diff") if suggestion.diff else fence(suggestion.overrides)
    return "\n\n".join([*([fence(suggestion.exports)] if suggestion.exports else []), change])


def _suggestion(number: int, suggestion: Suggestion) -> str:
    sources = [f"{prose(c.title)} ({prose(c.id)})" for c in suggestion.citations]
    lists = {
        "Reasons:": [prose(line) for line in suggestion.reasons],
        "Trade-offs:": [prose(line) for line in suggestion.trade_offs],
        "Sources:": sources,
    }
    parts = [part for label, lines in lists.items() if lines for part in (label, listing(lines))]
    return "\n\n".join([f"**{number}. {prose(suggestion.title)}**", _change(suggestion), *parts])
