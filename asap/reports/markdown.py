"""The same report as Markdown, for files and comments. Everything that came from files is escaped."""

import re
from collections.abc import Iterable

from asap.core.text import markdown, plain_lines
from asap.proposals import Proposal
from asap.proposals.trials import OfferedTrial
from asap.reports import phrases, profile_facts
from asap.reports.analysis import Analysis
from asap.reports.labels import flag_sentences
from asap.reports.proposal_table import changed, order_sentence
from asap.reports.summary import run_facts, summary_of


def listing(lines: Iterable[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {markdown(line)}" for line in lines)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of plain texts."""
    columns = tuple(head)
    lines = [tuple(map(markdown, columns)), tuple("---" for _ in columns), *(tuple(map(markdown, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fence(lines: Iterable[str]) -> list[str]:
    """A code block, if there is anything in it."""
    text = "\n".join(plain_lines(line).replace("`", "") for line in lines)
    return [f"```\n{text}\n```"] if text else []


_PLAIN_URL = re.compile(r"https://[\w./-]+", re.ASCII)


def to_markdown(analysis: Analysis) -> str:
    """A report in GitHub's Markdown."""
    said = summary_of(analysis)
    sections = [f"# {markdown(said.title)}", "## Recommendation", *([markdown(said.finding)] if said.finding else [])]
    sections += [markdown(said.verdict), *fence(said.lines)]
    if analysis.recommendation.prose:
        sections.append(f"The agent: {markdown(analysis.recommendation.prose)}")
    if said.rows:
        below = filter(None, (order_sentence(analysis), said.legend))
        sections += [table(said.columns, said.rows), markdown(" ".join(below))]
    sections += ["## Why", listing((*said.why, *([f"Missing: {said.missing}"] if said.missing else [])))]
    sections += [f"## The run: {markdown(phrases.bottleneck_name(analysis))}", table(("", ""), run_facts(analysis))]
    if analysis.kpis is not None:
        sections += ["## KPIs", table(("KPI", "value"), profile_facts.kpi_facts(analysis.kpis))]
    if analysis.top_operations:
        rows = [profile_facts.operation_cells(operation) for operation in analysis.top_operations]
        sections += ["## Top operations", table(("time", "bound", "of roofline", "operation"), rows)]
    sections += ["## Diagnosis", listing(_diagnosis(analysis))]
    if analysis.proposals:
        sections += ["## Proposals", *map(markdown, phrases.incumbent_compiled(analysis))]
        sections += [_proposal(proposal) for proposal in analysis.proposals]
    if analysis.flags and (sentences := flag_sentences(analysis.flags)):
        sections += ["## Flags", listing(sentences), *fence(analysis.flags.exports)]
    if analysis.trials:
        sections += ["## Worth a test", "\n".join(map(_trial, analysis.trials))]
        sections += fence(trial.line for trial in analysis.trials)
    if analysis.ideas:
        sections += ["## Untested ideas", listing(map(phrases.idea_sentence, analysis.ideas))]
    if words := phrases.agents_words(analysis):
        sections += [f"## {phrases.MODELS_WORDS.capitalize()}", listing(f"{author}: {text}" for author, text in words)]
        sections.append(f"({markdown(phrases.OWN_WORDS)})")
    if analysis.options:
        sections += ["## Beyond that", listing(option.statement for option in analysis.options)]
    if analysis.warnings:
        sections += ["## Warnings", listing(analysis.warnings)]
    sections.append(f"Session {markdown(analysis.session)}, {markdown(phrases.answered_by(analysis))}.")
    return "\n\n".join(sections) + "\n"


def _diagnosis(analysis: Analysis) -> list[str]:
    diagnosis = analysis.diagnosis
    lines = [f.statement + (f" Next: {f.advice}." if f.advice else "") for f in diagnosis.findings]
    lines += [*diagnosis.inefficiencies, *diagnosis.correlation]
    return lines


def _proposal(proposal: Proposal) -> str:
    parts = [
        f"### {proposal.rank}. {markdown(proposal.title)}",
        f"Changes: {markdown(changed(proposal))}. Plan: {markdown(proposal.plan)}.",
        listing(proposal.reasoning),
        "Expected: " + "; ".join(markdown(f"{i.name} {i.statement}") for i in proposal.impact) + ".",
        "Trade-offs:",
        listing(proposal.trade_offs),
        "Confidence is based on:",
        listing(proposal.confidence.basis),
        *([markdown(proposal.test_worth.statement)] if proposal.test_worth else []),
        *(markdown(said) for said in phrases.agent_prose(proposal)),
    ]
    if proposal.citations:
        parts += ["Sources:", "\n".join(_citation(c.source, c.url, c.id) for c in proposal.citations)]
    return "\n\n".join([*parts, *fence(proposal.overrides.lines)])


def _trial(trial: OfferedTrial) -> str:
    """Its statement, with its sources as links."""
    sources = (f"<{one}>" if _PLAIN_URL.fullmatch(one) else markdown(one) for one in trial.source.split(", "))
    return f"- {markdown(trial.statement)} ({', '.join(sources)})"


def _citation(title: str, url: str | None, identity: str) -> str:
    text = f"{markdown(title)} ({markdown(identity)})"
    safe = url if url and url.startswith("https://") and not set(url) & set("()<> \n`") else None
    return f"- [{text}]({safe})" if safe else f"- {text}"
