"""The same report as Markdown, for files and comments. Everything that came from files is escaped."""

import re
from collections.abc import Iterable

from asap.core.text import markdown, plain_lines
from asap.proposals import Proposal
from asap.proposals.trials import OfferedTrial
from asap.reports import descriptions, phrases, profile_facts
from asap.reports.analysis import Analysis
from asap.reports.flags import flag_sentences
from asap.reports.proposal_table import changed, order_sentence, proposal_table

_PLAIN_URL = re.compile(r"https://[\w./-]+", re.ASCII)


def to_markdown(analysis: Analysis) -> str:
    """A report in GitHub's Markdown."""
    sections = [
        f"# {markdown(analysis.experiment.id)}: {markdown(phrases.bottleneck_name(analysis))}",
        _table(("", ""), descriptions.experiment_facts(analysis.experiment)),
    ]
    sections += _situation(analysis)
    if analysis.kpis is not None:
        sections += ["## KPIs", _table(("KPI", "value"), profile_facts.kpi_facts(analysis.kpis))]
    if analysis.top_operations:
        rows = [profile_facts.operation_cells(operation) for operation in analysis.top_operations]
        sections += ["## Top operations", _table(("time", "bound", "of roofline", "operation"), rows)]
    sections += ["## Diagnosis", _list(_diagnosis(analysis))]
    if analysis.proposals:
        axes = markdown(phrases.axis_legend(phrases.shown_plans(analysis)))
        legend = f" Axes: {axes}." if axes else ""
        columns, rows = proposal_table(analysis)
        sections += ["## Proposals", _table(columns, rows), f"{markdown(order_sentence(analysis))}{legend}"]
        sections += map(markdown, phrases.incumbent_compiled(analysis))
        sections += [_proposal(proposal) for proposal in analysis.proposals]
    if analysis.flags and (sentences := flag_sentences(analysis.flags)):
        sections += ["## Flags", _list(sentences), *_block(analysis.flags.exports)]
    if analysis.trials:
        sections += ["## Worth a test", "\n".join(map(_trial, analysis.trials))]
        sections += _block(trial.line for trial in analysis.trials)
    sections += ["## Recommendation", markdown(analysis.recommendation.statement)]
    if analysis.recommendation.prose:
        sections.append(f"The agent: {markdown(analysis.recommendation.prose)}")
    if said := phrases.agents_words(analysis):
        sections += [f"## {phrases.MODELS_WORDS.capitalize()}", _list(f"{author}: {text}" for author, text in said)]
    if analysis.options:
        sections += ["## Beyond that", _list(option.statement for option in analysis.options)]
    if analysis.warnings:
        sections += ["## Warnings", _list(analysis.warnings)]
    sections.append(f"Session {markdown(analysis.session)}, {markdown(phrases.answered_by(analysis))}.")
    return "\n\n".join(sections) + "\n"


def _situation(analysis: Analysis) -> list[str]:
    facts = [phrases.modelled_facts(analysis), analysis.modelled.statement if analysis.modelled else ""]
    said = [analysis.situation_statement or "", *facts]
    return ["## Situation", _list(filter(None, said))] if any(said) else []


def _diagnosis(analysis: Analysis) -> list[str]:
    diagnosis = analysis.diagnosis
    lines = [f.statement + (f" Next: {f.advice}." if f.advice else "") for f in diagnosis.findings]
    lines += diagnosis.correlation
    if diagnosis.missing:
        lines.append(f"Missing: {profile_facts.missing(diagnosis.missing)}")
    return lines


def _proposal(proposal: Proposal) -> str:
    parts = [
        f"### {proposal.rank}. {markdown(proposal.title)}",
        f"Changes: {markdown(changed(proposal))}. Plan: {markdown(proposal.plan)}.",
        _list(proposal.reasoning),
        "Expected: " + "; ".join(markdown(f"{i.name} {i.statement}") for i in proposal.impact) + ".",
        "Trade-offs:",
        _list(proposal.trade_offs),
        "Confidence is based on:",
        _list(proposal.confidence.basis),
        *([markdown(proposal.test_worth.statement)] if proposal.test_worth else []),
        *(markdown(said) for said in phrases.agent_prose(proposal)),
    ]
    if proposal.citations:
        parts += ["Sources:", "\n".join(_citation(c.source, c.url, c.id) for c in proposal.citations)]
    return "\n\n".join([*parts, *_block(proposal.overrides.lines)])


def _trial(trial: OfferedTrial) -> str:
    """Its statement, with its sources as links."""
    sources = (f"<{one}>" if _PLAIN_URL.fullmatch(one) else markdown(one) for one in trial.source.split(", "))
    return f"- {markdown(trial.statement)} ({', '.join(sources)})"


def _block(lines: Iterable[str]) -> list[str]:
    """A code block, if there is anything in it."""
    text = "\n".join(plain_lines(line).replace("`", "") for line in lines)
    return [f"```\n{text}\n```"] if text else []


def _citation(title: str, url: str | None, identity: str) -> str:
    text = f"{markdown(title)} ({markdown(identity)})"
    safe = url if url and url.startswith("https://") and not set(url) & set("()<> \n`") else None
    return f"- [{text}]({safe})" if safe else f"- {text}"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {markdown(line)}" for line in lines)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(markdown(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
