"""A report as the Markdown of one comment: hostile text escaped, no link, never longer than GitHub takes."""

from collections.abc import Iterable

from asap.ci.figures import memory_phrase, relative_phrase
from asap.ci.harmless import prose, table
from asap.ci.report import CiReport, ConfigurationReport
from asap.ci.section import SEVERITY, VERDICTS, findings_of, section

MARKER = "<!-- asap-ci -->"
LONGEST = 65_536
"""Characters that GitHub takes in the body of a comment; counted as bytes here, which is on the safe side."""

_NOTHING = "No training configuration differs from the base."
_SHORTENED = "_Shortened: the artifact of this check holds the whole report (`asap-ci.json`, `comment.md`)._"
_READING = (
    " Figures are predictions with 90 % intervals, unless they are said to be measured. `asap knowledge show ID` and"
    " `asap history show ID` open the sources."
)
_GAP = "\n\n"


def to_comment(report: CiReport, limit: int = LONGEST, remark: str | None = None) -> str:
    """The comment, with the hidden marker by which it is found again.

    Args:
        report: what it tells.
        limit: bytes that it may have.
        remark: what a language model says of the report.
    """
    order = sorted(report.configurations, key=lambda one: (_severity(report, one), one.path))
    room = _Room(limit)
    head = [MARKER, f"## ASAP: {headline(report)}", *([f"A language model says: {prose(remark)}"] if remark else [])]
    foot = _footer(report)
    room.take(*head, foot, _SHORTENED)
    head += room.filled(limit // 8, (prose(note) for note in report.notes))
    if order:
        head.append(_overview(report, order, room, limit // 4))
    body = _sections(report, order, room)
    end = [_SHORTENED, foot] if room.shortened else [foot]
    return _GAP.join([*head, *body, *end]) + "\n"


def headline(report: CiReport) -> str:
    """The result in a sentence."""
    if not report.configurations:
        return "nothing to say. " + _NOTHING
    count = len(report.configurations)
    changed = f"{count} configuration{'s' if count > 1 else ''} changed"
    failing = len({finding.path for finding in report.findings if finding.level == "error"})
    warned = len({finding.path for finding in report.findings if finding.level == "warning"})
    said = [f"{failing} fail{'s' if failing == 1 else ''}"] if failing else []
    said += [f"{warned} with a warning"] if warned else []
    return ", ".join([changed, *said])


def _sections(report: CiReport, order: list[ConfigurationReport], room: "_Room") -> list[str]:
    """Whole sections while there is room, then brief ones; what comes after is in the artifact."""
    body: list[str] = []
    whole = True
    for one in order:
        text = section(report, one, whole)
        if whole and not room.has(text):
            whole, room.shortened = False, True
            text = section(report, one, whole)
        if not room.has(text):
            break
        room.take(text)
        body.append(text)
    room.shortened |= len(body) < len(order)
    return body


class _Room:
    """Bytes that are left, and whether something had to be left out."""

    def __init__(self, limit: int):
        self._left = limit
        self.shortened = False

    def has(self, text: str) -> bool:
        return _size(text) <= self._left

    def take(self, *texts: str) -> None:
        self._left -= sum(map(_size, texts))

    def filled(self, limit: int, texts: Iterable[str]) -> list[str]:
        """As many texts as fit into a part of the room."""
        kept: list[str] = []
        for text in texts:
            limit -= _size(text)
            if limit < 0:
                self.shortened = True
                break
            kept.append(text)
        self.take(*kept)
        return kept


def _overview(report: CiReport, order: list[ConfigurationReport], room: _Room, limit: int) -> str:
    words = dict(zip(SEVERITY.values(), VERDICTS.values(), strict=True))
    rows = [
        (
            one.path,
            one.status,
            relative_phrase(one.relative_cost) if one.before and one.after else "",
            memory_phrase(one.after.expectation if one.after else None),
            words.get(_severity(report, one), "passes"),
        )
        for one in order
    ]
    lines = table(("configuration", "change", "chip time a token", "HBM a device", "verdict"), rows).splitlines()
    return "\n".join(room.filled(limit, lines))


def _footer(report: CiReport) -> str:
    origin = f"{report.base[:12]} → {report.head[:12]}, asap {prose(report.version, 20)}."
    return f"<sub>{origin}{_READING if report.configurations else ''}</sub>"


def _severity(report: CiReport, one: ConfigurationReport) -> int:
    return min((SEVERITY[finding.level] for finding in findings_of(report, one)), default=len(SEVERITY))


def _size(text: str) -> int:
    return len(text.encode(errors="replace")) + len(_GAP)
