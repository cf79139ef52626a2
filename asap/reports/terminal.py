"""The report for a terminal: one screen, and the rest on request."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from asap.core.text import INSIDE_ITEM, plain, plain_lines, wrapped
from asap.core.units import counted
from asap.proposals import Proposal
from asap.reports import phrases, profile_facts
from asap.reports.analysis import Analysis
from asap.reports.labels import flag_sentences
from asap.reports.proposal_table import CHANGES, changed, order_sentence
from asap.reports.summary import WHY, Summary, run_facts, summary_of
from asap.reports.terminal_bars import StepBars

LABEL = "bold cyan"
WIDEST, NARROWEST = 120, 40
SCREEN = 25
"""Lines of the short report at 100 columns, if what is to be pasted has no more than ``PASTED``."""
PASTED = 6
_MARGIN = 9
REST = "--full has the rest"
_CUT = " …"
_LENGTHS = ((2, 2), (2, 1), (1, 1))
"""Lines of a reason and of other texts; the first with which all is on one screen."""


def print_analysis(analysis: Analysis, console: Console, *, full: bool = False) -> None:
    """Print a report. Colour and width are the console's affair.

    Args:
        analysis: what is reported.
        console: where it is printed.
        full: the rest as well: what a step is made of, operations, each proposal, flags, settings, sources, warnings.
    """
    width = max(min(console.width, WIDEST), NARROWEST)
    summary = summary_of(analysis)
    options, rest = console.options.update(width=width), ""
    parts = [*_screen(summary, width, None, None), *_rest(analysis)] if full else []
    for why, other in () if full else _LENGTHS:
        parts = [*_screen(summary, width, why, other)]
        hidden = len(summary.warnings[other:])
        rest = f"; {REST}" + (f", {counted(hidden, 'more warning')}" if hidden else "")
        if len(console.render_lines(Group(*parts), options)) < SCREEN:
            break
    footer = f"session {analysis.session}, {phrases.answered_by(analysis)}{rest}"
    parts.append(Text(plain(footer), style="dim"))
    console.print(Group(*parts), width=width, crop=False)


def _screen(summary: Summary, width: int, why: int | None, other: int | None) -> Iterator[RenderableType]:
    """What a reader acts on; below the table no reason is longer than ``why`` lines, and no other text than ``other``,
    which is the number of warnings as well."""
    yield Text(plain(summary.title), style="bold")
    if summary.finding:
        yield from _wrapped(summary.finding, width, style="bold red")
    yield from _wrapped(summary.verdict, width, style="bold green")
    yield from map(_paste, summary.lines)
    if summary.rows:
        yield Text("")
        yield from _overview(summary, width)
    if summary.legend:
        yield from _wrapped(summary.legend, width, style="dim")
    yield Text("")
    before = ""
    for label, text in summary.points(full=other is None):
        most = why if label == WHY else other and (1 if label in ("Flags", "Missing") else other)
        yield from _labelled(label if label != before else "", text, width, most)
        before = label
    for place, warning in enumerate(summary.warnings[:other]):
        yield from _labelled("Warning", warning, width, other and other - place, style="yellow")


def _labelled(label: str, text: str, width: int, most: int | None, style: str = "") -> Iterator[Text]:
    lines = wrapped(plain(text), width - _MARGIN, max_lines=most, placeholder=_CUT)
    if (last := lines[-1]).endswith(_CUT) and most is not None:
        lines[-1] = _whole_items(last.removesuffix(_CUT))
    for n, line in enumerate(lines):
        yield Text(f"{label if n == 0 else '':<{_MARGIN}}", style=LABEL).append(line, style=style or "not bold default")


def _whole_items(line: str) -> str:
    """A line that was cut, up to its last whole sentence, clause or item of a list in its second half."""
    place = max(line.rfind(mark) for mark in (". ", "; ", ", "))
    if place <= len(line) // 2:
        return line + _CUT
    return line[: place + 1] if line[place] == "." else f"{line[: place + 1]} …"


def _wrapped(text: str, width: int, style: str) -> Iterator[Text]:
    yield from (Text(line, style=style) for line in wrapped(plain(text), width))


def _overview(summary: Summary, width: int) -> Iterator[RenderableType]:
    """Now and the proposals; what they change stands below the table where that takes fewer lines."""
    room = width - sum(max(map(len, one)) + 2 for one in [*zip(summary.columns, *summary.rows, strict=True)][:-1])
    changes = [row[-1] for row in summary.rows if row[-1]] if summary.columns[-1] == CHANGES else []
    fit = all(len(item) < room for text in changes for item in text.split(", "))
    below = not fit or sum(len(wrapped(text, room, INSIDE_ITEM)) - 1 for text in changes) > len(changes)
    kept = len(summary.columns) - below
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in summary.columns[:kept]:
        table.add_column(column, overflow="fold", no_wrap=column != CHANGES)
    for row in summary.rows:
        texts = list(map(plain, row[:kept]))
        table.add_row(*texts[:-1], texts[-1] if below else "\n".join(wrapped(texts[-1], room, INSIDE_ITEM)))
    yield table
    for row in summary.rows if below else ():
        yield from map(Text, wrapped(f"{row[0]}: {plain(row[-1])}", width) if row[-1] else ())


def _rest(analysis: Analysis) -> Iterator[RenderableType]:
    yield Text("")
    kpis = profile_facts.kpi_facts(analysis.kpis) if analysis.kpis else []
    yield from (_line(label, value) for label, value in [*run_facts(analysis), *kpis])
    yield from _causes(analysis)
    yield StepBars(analysis)
    if analysis.top_operations:
        yield _operations(analysis)
    yield _diagnosis(analysis)
    if analysis.proposals:
        yield _heading("Proposals")
        yield from (Text(plain(one), style="dim") for one in (order_sentence(analysis),) if one)
        yield from map(_bullet, phrases.incumbent_compiled(analysis))
        yield from _proposals(analysis.proposals)
    yield from _flags(analysis)
    yield from _trials(analysis)
    yield from (_line("Untested" if n == 0 else "", phrases.idea_sentence(one)) for n, one in enumerate(analysis.ideas))
    if analysis.recommendation.prose:
        yield _line("The agent", analysis.recommendation.prose)
    yield from (
        _line(author, f"{text} ({phrases.MODELS_WORDS}; {phrases.OWN_WORDS})")
        for author, text in phrases.agents_words(analysis)
    )
    yield from (_line("Beyond that" if n == 0 else "", one.statement) for n, one in enumerate(analysis.options))


def _causes(analysis: Analysis) -> Iterator[RenderableType]:
    """What may explain a measured step that is not as expected."""
    judged = analysis.judgement
    if judged is not None and judged.is_finding and judged.causes:
        yield _heading("What may explain it")
        texts = (f"{cause.statement}. {cause.expects} Check: {cause.check}." for cause in judged.causes)
        yield from (_bullet(f"{text[0].upper()}{text[1:]}") for text in texts)


def _operations(analysis: Analysis) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
    for column in ("time", "bound", "of roofline", "operation"):
        table.add_column(column, overflow="fold")
    for operation in analysis.top_operations:
        share, bound, efficiency, name = profile_facts.operation_cells(operation)
        table.add_row(share, bound, efficiency, Text(plain(name, 72)))
    return Group(_heading("Top operations"), table)


def _diagnosis(analysis: Analysis) -> Group:
    head = _heading("Diagnosis").append(f"  {phrases.bottleneck_name(analysis)}", style="bold")
    diagnosis = analysis.diagnosis
    sentences = [_finding(finding.statement, finding.advice) for finding in diagnosis.findings]
    return Group(head, *map(_bullet, (*sentences, *diagnosis.inefficiencies, *diagnosis.correlation)))


def _finding(statement: str, advice: str | None) -> str:
    return f"{statement[0].upper()}{statement[1:]}" + (f" Next: {advice}." if advice else "")


def _proposals(proposals: Sequence[Proposal]) -> Iterator[RenderableType]:
    """Each with reasons, costs, sources and the line to paste, which is never broken; nothing is said twice."""
    said: set[str] = set()
    for proposal in proposals:
        named = Text(f"{proposal.rank}  {plain(proposal.title)}", style="bold")
        yield named.append(f" ({plain(changed(proposal))})", style="not bold") if proposal.settings else named
        lines = [("+", reason) for reason in proposal.reasoning] + [("-", cost) for cost in proposal.trade_offs]
        lines += [("$", proposal.test_worth.statement)] if proposal.test_worth else []
        lines += [("=", f"Compiled: {verdict}")] if (verdict := proposal.prediction.compiled) else []
        lines += [("§", f"{citation.source} [{citation.id}]") for citation in proposal.citations]
        lines += [("»", words) for words in phrases.agent_prose(proposal)]
        yield from (_bullet(text, mark) for mark, text in lines if text not in said)
        said.update(text for _, text in lines)
        yield from map(_paste, proposal.overrides.lines)


def _flags(analysis: Analysis) -> Iterator[RenderableType]:
    """Flags that are missing or do harm, with the lines to paste."""
    sentences = flag_sentences(analysis.flags) if analysis.flags else []
    if analysis.flags is not None and sentences:
        yield _heading("Flags")
        yield from map(_bullet, sentences)
        yield from map(_paste, analysis.flags.exports)


def _trials(analysis: Analysis) -> Iterator[RenderableType]:
    """What only a test tells, with the lines to paste."""
    if analysis.trials:
        yield _heading("Worth a test")
    for trial in analysis.trials:
        yield _bullet(trial.statement)
        yield _paste(trial.line)


def _paste(line: str) -> Text:
    return Text(textwrap.indent(plain_lines(line), "     "), style="green", no_wrap=True, overflow="ignore")


def _heading(text: str) -> Text:
    return Text(text, style=LABEL)


def _line(label: str, value: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=15)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=LABEL), Text(plain(value)))
    return grid


def _bullet(text: str, mark: str = "·") -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=4, justify="right")
    grid.add_column(overflow="fold")
    grid.add_row(mark, Text(plain(text)))
    return grid
