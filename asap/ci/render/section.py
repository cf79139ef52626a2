"""One configuration in a comment."""

from asap.ci.render.escape import fence, listing, prose, table
from asap.ci.render.figures import facts_table, unchanged
from asap.ci.report import CiReport, ConfigurationReport, Level, PolicyFinding, Suggestion
from asap.core.units import format_bytes, format_percent
from asap.reports.phrases import UNKNOWN, interval, percent_change

VERDICTS: dict[Level, str] = {"error": "Fails", "warning": "Warning", "note": "Note"}
SEVERITY: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}
_IN_FACTS_TABLE = {"plan", "batch", "hardware"}


def section(report: CiReport, one: ConfigurationReport, whole: bool) -> str:
    """Everything about a configuration, or, if not ``whole``, its figures and findings.

    If there are several, those without a finding are collapsed.
    """
    found = findings_of(report, one)
    findings = [f"**{VERDICTS[finding.level]}**: {prose(finding.message)}" for finding in found]
    parts = [listing([*findings, *_facts(one, any(finding.rule == "repeated_failure" for finding in found))])]
    head, rows = facts_table(one, report.currency)
    if rows:
        parts.append(table(head, rows))
    if whole:
        changes = [(c.what, c.before, c.after) for c in one.changes if c.what not in _IN_FACTS_TABLE]
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
        how = "the prediction is based on its profile" if used else "not used, as more than the plan differs"
        facts.append(f"Linked experiment {prose(one.experiment)}: {how}.")
    if one.before and one.before.problem:
        facts.append(f"Could not be read before the change: {prose(one.before.problem)}")
    return facts


def _proposals(one: ConfigurationReport) -> str:
    if not one.suggestions:
        return prose(one.recommendation or "")
    rows = [
        (str(number), s.plan, _step(s), _hbm(s), _probability(s.faster)) for number, s in enumerate(one.suggestions, 1)
    ]
    overview = table(("", "proposal", "step time", "HBM per device", "faster"), rows)
    details = "\n\n".join(_suggestion(number, s) for number, s in enumerate(one.suggestions, 1))
    return "\n\n".join([prose(one.recommendation or ""), overview, collapsed("The change for each proposal", details)])


def _suggestion(number: int, suggestion: Suggestion) -> str:
    sources = [f"{prose(c.title)} ({prose(c.id)})" for c in suggestion.citations]
    change = fence(suggestion.diff, "diff") if suggestion.diff else fence(suggestion.overrides)
    lists = {
        "Reasons:": [prose(line) for line in suggestion.reasons],
        "Trade-offs:": [prose(line) for line in suggestion.trade_offs],
        "Sources:": sources,
    }
    parts = [part for label, lines in lists.items() if lines for part in (label, listing(lines))]
    return "\n\n".join([f"**{number}. {prose(suggestion.title)}**", change, *parts])


def _step(suggestion: Suggestion) -> str:
    if suggestion.relative_step_time is None:
        return interval(suggestion.step_time)
    return percent_change(suggestion.relative_step_time)


def _hbm(suggestion: Suggestion) -> str:
    return format_bytes(suggestion.hbm.value) if suggestion.hbm else UNKNOWN


def _probability(value: float | None) -> str:
    return UNKNOWN if value is None else format_percent(value, 0)
