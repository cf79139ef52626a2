"""A report as the Markdown of one comment: hostile text escaped, no link, never longer than GitHub takes."""

from collections.abc import Iterable

from asap.ci.render.section import SEVERITY, VERDICTS, findings_of, hbm_use, prose, section, table
from asap.ci.report import CiReport, ConfigurationReport
from asap.core.units import format_change
from asap.reports.phrases import percent_change

MARKER = "<!-- asap-ci -->"
LONGEST = 65_536
"""Characters that GitHub accepts in a comment; counted as bytes here, which is the stricter limit."""

_SHORTENED = "_Shortened: the artifact of this check has the full report (`asap-ci.json`, `comment.md`)._"
_HOW_TO_READ = (
    " Figures are predictions, with 90 % intervals in brackets. `asap knowledge show ID` and"
    " `asap history show ID` show the sources, `asap analyze FILE --full` what is left out here: KPIs, untested ideas."
)
_GAP = "\n\n"
_LOOKED_AT = (
    "Not checked: no changed file is a configuration or launch script that is read. A file that should be is named by"
    " `--files` or the policy."
)


def to_comment(report: CiReport, limit: int = LONGEST, remark: str | None = None) -> str:
    """The comment, with the hidden marker that identifies it.

    Args:
        report: the result of the check.
        limit: bytes of the comment.
        remark: what a language model says about the report.
    """
    order = sorted(report.configurations, key=lambda one: (_severity(report, one), one.path))
    budget = _ByteBudget(limit)
    head = [MARKER, f"## ASAP: {headline(report)}", *([f"A language model says: {prose(remark)}"] if remark else [])]
    foot = _footer(report)
    budget.spend(*head, foot, _SHORTENED)
    head += budget.spend_on(limit // 8, (prose(note) for note in report.notes))
    if not order:
        head.append(_LOOKED_AT)
    else:
        head.append(_overview(report, order, budget, limit // 4))
    body = _sections(report, order, budget)
    end = [_SHORTENED, foot] if budget.shortened else [foot]
    return _GAP.join([*head, *body, *end]) + "\n"


def headline(report: CiReport) -> str:
    """The result in a sentence."""
    if not report.configurations:
        return "no changed file is read as a training configuration"
    count = len(report.configurations)
    changed = f"{count} configuration{'s' if count > 1 else ''} changed"
    over = {one.path for one in report.configurations if _does_not_fit(one)}
    failing = len({finding.path for finding in report.findings if finding.level == "error"} - over)
    warned = len({finding.path for finding in report.findings if finding.level == "warning"})
    results = [f"{len(over)} do{'es' if len(over) == 1 else ''} not fit"] if over else []
    results += [effect] if (effect := _effect(report)) else []
    results += [f"{failing} fail{'s' if failing == 1 else ''}"] if failing else []
    results += [f"{warned} with a warning"] if warned else []
    unchecked = sum(
        1 for one in report.configurations if one.after is not None and one.not_checked and not findings_of(report, one)
    )
    results += [f"{unchecked} not checked"] if unchecked else []
    return ", ".join([changed, *results])


def _does_not_fit(one: ConfigurationReport) -> bool:
    return one.after is not None and one.after.prediction is not None and one.after.prediction.fit == "does not fit"


def _sections(report: CiReport, order: list[ConfigurationReport], budget: "_ByteBudget") -> list[str]:
    """Full sections while they fit, then short ones; the rest is left to the artifact."""
    body: list[str] = []
    whole = True
    for one in order:
        text = section(report, one, whole)
        if whole and not budget.fits(text):
            whole, budget.shortened = False, True
            text = section(report, one, whole)
        if not budget.fits(text):
            break
        budget.spend(text)
        body.append(text)
    budget.shortened |= len(body) < len(order)
    return body


class _ByteBudget:
    """Bytes that are left, and whether something was left out."""

    def __init__(self, limit: int):
        self._left = limit
        self.shortened = False

    def fits(self, text: str) -> bool:
        return _size(text) <= self._left

    def spend(self, *texts: str) -> None:
        self._left -= sum(map(_size, texts))

    def spend_on(self, limit: int, texts: Iterable[str]) -> list[str]:
        """As many of the texts as fit into ``limit`` bytes of the budget."""
        kept: list[str] = []
        for text in texts:
            limit -= _size(text)
            if limit < 0:
                self.shortened = True
                break
            kept.append(text)
        self.spend(*kept)
        return kept


def _overview(report: CiReport, order: list[ConfigurationReport], budget: _ByteBudget, limit: int) -> str:
    words = dict(zip(SEVERITY.values(), VERDICTS.values(), strict=True))
    rows = [
        (
            one.path,
            one.status,
            percent_change(one.relative_cost) if one.relative_cost else "",
            hbm_use(one.after.prediction if one.after else None),
            words.get(_severity(report, one)) or (f"not checked: {one.not_checked}" if one.not_checked else "passes"),
        )
        for one in order
    ]
    lines = table(("configuration", "change", "chip time per token", "HBM per device", "verdict"), rows).splitlines()
    return "\n".join(budget.spend_on(limit, lines))


def _effect(report: CiReport) -> str:
    """The predicted effect on what can run: of the one configuration, or from the best to the worst."""
    known = [one.relative_cost for one in report.configurations if one.relative_cost is not None and one.changes]
    if not known:
        return ""
    if len(known) == 1:
        return f"chip time per token {percent_change(known[0])}"
    least, most = (format_change(pick(one.value for one in known)) for pick in (min, max))
    return f"chip time per token {least if least == most else f'{least} to {most}'}"


def _footer(report: CiReport) -> str:
    origin = f"{report.base[:12]} → {report.head[:12]}, asap {prose(report.version, 20)}."
    return f"<sub>{origin}{_HOW_TO_READ if report.configurations else ''}</sub>"


def _severity(report: CiReport, one: ConfigurationReport) -> int:
    return min((SEVERITY[finding.level] for finding in findings_of(report, one)), default=len(SEVERITY))


def _size(text: str) -> int:
    return len(text.encode(errors="replace")) + len(_GAP)
