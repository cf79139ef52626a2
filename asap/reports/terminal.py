"""The one-screen report for a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from asap.core.text import plain, plain_lines
from asap.proposals import Proposal
from asap.reports import descriptions, phrases, profile_facts
from asap.reports.analysis import Analysis
from asap.reports.flags import flag_sentences
from asap.reports.proposal_table import changed, order_sentence, proposal_table
from asap.reports.terminal_bars import StepBars

LABEL = "bold cyan"
WIDEST = 120
SOURCES = 1
MOST_SENTENCES = 3
MOST_WARNINGS = 2
MOST_FLAGS = 3
REST = "with --format markdown"


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Print a report. Colour and width are the console's affair."""
    parts: list[RenderableType] = [_head(analysis), *_situation(analysis), StepBars(analysis)]
    if analysis.experiment.profile:
        parts.append(_operations(analysis))
    parts.append(_diagnosis(analysis))
    if analysis.proposals:
        parts += [
            _heading("Proposals"),
            _overview(analysis),
            Text(plain(order_sentence(analysis)), style="dim"),
            *_axes(analysis),
            *map(_bullet, phrases.incumbent_compiled(analysis)),
        ]
        parts += _proposals(analysis.proposals)
    parts += _flags(analysis)
    parts += _trials(analysis)
    parts.append(_line("Recommendation", analysis.recommendation.statement))
    if analysis.recommendation.prose:
        parts.append(_line("The agent", analysis.recommendation.prose))
    parts += [_line(author, f"{text} ({phrases.MODELS_WORDS})") for author, text in phrases.agents_words(analysis)]
    parts += [_line("Beyond that", analysis.options[0].statement)] if analysis.options else []
    parts += [_line("", option.statement) for option in analysis.options[1:]]
    parts += _warnings(analysis)
    footer = f"session {analysis.session}, {phrases.answered_by(analysis)}"
    parts.append(Text(plain(footer), style="dim"))
    console.print(Group(*parts), width=min(console.width, WIDEST), crop=False)


def _head(analysis: Analysis) -> Group:
    lines: list[RenderableType] = [Text(plain(analysis.experiment.id), style="bold")]
    facts = descriptions.experiment_facts(analysis.experiment)
    lines += [_line(label, value) for label, value in facts]
    if analysis.kpis is not None:
        kpis = ", ".join(f"{label} {value}" for label, value in profile_facts.kpi_facts(analysis.kpis))
        lines.append(_line("KPIs", kpis))
    return Group(*lines)


def _situation(analysis: Analysis) -> list[RenderableType]:
    """What decides the advice, and what the model says of a run that was not measured."""
    said = [("Situation", analysis.situation_statement), ("", phrases.modelled_facts(analysis))]
    said.append(("", analysis.modelled.statement if analysis.modelled else None))
    return [*_finding_first(analysis), *(_line(label, text) for label, text in said if text)]


def _finding_first(analysis: Analysis) -> list[RenderableType]:
    """That the measured step is not what the model expects, with what may explain it; nothing where it is."""
    judged = analysis.judgement
    if judged is None or not judged.is_finding:
        return []
    causes = (f"{cause.statement}. {cause.expects} Check: {cause.check}." for cause in judged.causes)
    return [_line("Finding", judged.statement), *(_bullet(f"{text[0].upper()}{text[1:]}") for text in causes)]


def _axes(analysis: Analysis) -> list[Text]:
    """What the axes mean; nothing on one device."""
    legend = phrases.axis_legend(phrases.shown_plans(analysis))
    return [Text(f"axes: {legend}", style="dim")] if legend else []


def _operations(analysis: Analysis) -> RenderableType:
    if not analysis.top_operations:
        return _line("operations", "none in the profile" if analysis.experiment.profile else "no profile")
    table = _table("time", "bound", "of roofline", "operation")
    for operation in analysis.top_operations:
        share, bound, efficiency, name = profile_facts.operation_cells(operation)
        table.add_row(share, bound, efficiency, Text(plain(name, 72)))
    return Group(_heading("Top operations"), table)


def _diagnosis(analysis: Analysis) -> Group:
    diagnosis = analysis.diagnosis
    head = _heading("Diagnosis")
    head.append(f"  {phrases.bottleneck_name(analysis)}", style="bold red")
    lines: list[RenderableType] = [head]
    sentences = [_finding(finding.statement, finding.advice) for finding in diagnosis.findings]
    sentences += diagnosis.correlation
    lines += [_bullet(sentence) for sentence in sentences[:MOST_SENTENCES]]
    if hidden := len(sentences) - MOST_SENTENCES:
        lines += [_bullet(f"{hidden} more {REST}")] if hidden > 0 else []
    if diagnosis.missing:
        lines.append(_bullet(f"Missing: {profile_facts.missing(diagnosis.missing, ' '.join(sentences))}"))
    return Group(*lines)


def _finding(statement: str, advice: str | None) -> str:
    return f"{statement[0].upper()}{statement[1:]}" + (f" Next: {advice}." if advice else "")


def _overview(analysis: Analysis) -> Table:
    columns, rows = proposal_table(analysis)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _proposals(proposals: Sequence[Proposal]) -> Iterator[RenderableType]:
    """Each with reason, cost, sources and the line to paste, which is never broken; nothing is said twice."""
    said: set[str] = set()
    for proposal in proposals:
        yield _named(proposal)
        sources = [f"{citation.source} [{citation.id}]" for citation in proposal.citations[:SOURCES]]
        lines = [("+", reason) for reason in proposal.reasoning[:1]]
        lines += [("-", cost) for cost in proposal.trade_offs[:1]]
        lines += [("$", proposal.test_worth.statement)] if proposal.test_worth else []
        lines += [("=", f"Compiled: {verdict}")] if (verdict := proposal.prediction.compiled) else []
        lines += [("§", source) for source in sources]
        lines += [("»", words) for words in phrases.agent_prose(proposal)]
        yield from (_bullet(text, mark) for mark, text in lines if text not in said)
        said.update(text for _, text in lines)
        for line in proposal.overrides.lines:
            yield _paste(line)


def _flags(analysis: Analysis) -> list[RenderableType]:
    """Flags that are missing or do harm, with the line to paste; nothing if there are none."""
    sentences = flag_sentences(analysis.flags) if analysis.flags else []
    if analysis.flags is None or not sentences:
        return []
    shown = [_heading("Flags"), *map(_bullet, sentences[:MOST_FLAGS])]
    if hidden := len(sentences[MOST_FLAGS:]):
        shown.append(_bullet(f"{hidden} more {REST}"))
    return [*shown, *map(_paste, analysis.flags.exports)]


def _trials(analysis: Analysis) -> list[RenderableType]:
    """What only a test tells, with the line to paste; nothing if there is none."""
    if not analysis.trials:
        return []
    lines = (part for trial in analysis.trials for part in (_bullet(trial.statement), _paste(trial.line)))
    return [_heading("Worth a test"), *lines]


def _paste(line: str) -> Text:
    return Text(f"     {plain_lines(line)}", style="green", no_wrap=True, overflow="ignore")


def _named(proposal: Proposal) -> Text:
    line = Text(f"{proposal.rank}  {plain(proposal.title)}", style="bold")
    return line.append(f" ({plain(changed(proposal))})", style="not bold") if proposal.settings else line


def _warnings(analysis: Analysis) -> list[RenderableType]:
    shown = [Text(f"! {plain(warning)}", style="yellow") for warning in analysis.warnings[:MOST_WARNINGS]]
    hidden = len(analysis.warnings) - len(shown)
    if hidden:
        shown.append(Text(f"! {hidden} more {REST}", style="yellow"))
    return [*shown]


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


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
