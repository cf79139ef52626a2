"""What every form of a report says first: what to do, what to paste, now and the proposals, why, what is missing."""

from dataclasses import dataclass

from asap.diagnosis import Bottleneck
from asap.flags import FlagReview
from asap.profiles import Gap
from asap.proposals import Proposal
from asap.proposals.trials import OfferedTrial, effect, fit_words
from asap.reports import phrases
from asap.reports.analysis import Analysis
from asap.reports.labels import batch_size, experiment_facts, listed, name_or_size
from asap.reports.proposal_table import PUBLISHED, Row, proposal_table

WHY = "Why"


@dataclass(frozen=True)
class Summary:
    """One screen of a report. Plain text, not escaped.

    Args:
        title: what was analysed, in a line.
        finding: that the measured step is not what the model expects, if so; it goes before the advice.
        verdict: what to do first.
        first: whose lines these are: a proposal, a setting, or missing flags.
        lines: to paste.
        columns: of now and the proposals.
        rows: now, then the proposals.
        legend: what the axes and columns mean.
        why: what holds the run back, the situation, and the reason, cost and worth of the first proposal.
        settings: what is worth a test beside every plan.
        flags: what is missing and what does harm.
        missing: what was not recorded, and what would record it.
        missing_facts: the same in a few words, without what would record it.
        warnings: what a reader should doubt.
    """

    title: str
    finding: str | None
    verdict: str
    lines: tuple[str, ...]
    columns: Row
    rows: tuple[Row, ...]
    legend: str
    why: tuple[str, ...]
    settings: str
    flags: str
    missing: str
    missing_facts: str
    warnings: tuple[str, ...]

    def points(self, *, full: bool) -> list[tuple[str, str]]:
        """What stands below the table, each with its label."""
        missing = self.missing if full else self.missing_facts
        found = [(WHY, one) for one in self.why]
        found += [("Test", self.settings), ("Flags", self.flags), ("Missing", missing)]
        return [(label, text) for label, text in found if text]


def summary_of(analysis: Analysis) -> Summary:
    """The summary of an analysis."""
    columns, rows = proposal_table(analysis)
    judged = analysis.judgement
    of_what, lines = _paste(analysis)
    return Summary(
        title=_title(analysis),
        finding=judged.statement if judged is not None and judged.is_finding else None,
        verdict=_verdict(analysis, of_what if lines else ""),
        lines=lines,
        columns=columns,
        rows=tuple(rows),
        legend=_legend(analysis, columns) if rows else "",
        why=_why(analysis),
        settings="; ".join(_setting(one) for one in analysis.trials if one != _advised_setting(analysis)),
        flags=_flags(analysis.flags) if analysis.flags else "",
        missing=_missing(analysis),
        missing_facts=_missing_facts(analysis),
        warnings=analysis.warnings,
    )


def run_facts(analysis: Analysis) -> list[tuple[str, str]]:
    """What was analysed and what decides the advice, as far as it is known."""
    found = experiment_facts(analysis.experiment)
    found += [("modelled", phrases.modelled_facts(analysis)), ("situation", analysis.situation_statement or "")]
    return [(label, value) for label, value in found if value and phrases.UNKNOWN not in value]


def _legend(analysis: Analysis, columns: Row) -> str:
    axes = phrases.axis_legend(phrases.shown_plans(analysis), analysis.experiment.workload.experts_over)
    parts = [f"axes: {axes}"] if axes and (analysis.proposals or analysis.modelled) else []  # else none is spoken of
    parts += [f"{PUBLISHED}: step time after such a change there"] if PUBLISHED in columns else []
    return "; ".join(parts)


def first_proposal(analysis: Analysis) -> Proposal | None:
    """The proposal that the advice speaks of."""
    return next((one for one in analysis.proposals if one.rank == analysis.recommendation.first), None)


def _title(analysis: Analysis) -> str:
    """``run: llama3.1-8b on v5e-256, 256 sequences of 8,192 tokens``, of what is known."""
    experiment, workload = analysis.experiment, analysis.experiment.workload
    hardware = experiment.hardware.name or experiment.hardware.chip
    parts = [name] if (name := name_or_size(experiment.model)) else []
    parts += [f"on {hardware}"] if hardware else []
    batch = [batch_size(workload)] if workload.global_batch or workload.sequence_length else []
    about = ", ".join(filter(None, (" ".join(parts), *batch)))
    return f"{experiment.id}: {about}" if about else experiment.id


def _verdict(analysis: Analysis, of_what: str) -> str:
    """What to do; where it does not name what the lines below it are of, that as well."""
    statement = analysis.recommendation.statement
    if not of_what or of_what.lower() in statement.lower():
        return statement
    return f"{statement} For {of_what}:"


def _paste(analysis: Analysis) -> tuple[str, tuple[str, ...]]:
    advice = analysis.recommendation
    if advice.lines:
        return "", tuple(line for text in advice.lines for line in text.splitlines())
    if (trial := _advised_setting(analysis)) is not None:
        return trial.title, tuple(trial.line.splitlines())
    proposal = first_proposal(analysis)
    if proposal is not None:
        return f"proposal {proposal.rank}", proposal.overrides.lines
    return "flags", analysis.flags.exports if analysis.flags else ()


def _advised_proposal(analysis: Analysis) -> Proposal | None:
    """The proposal whose lines are shown."""
    if not analysis.recommendation.lines:
        return first_proposal(analysis)
    lines = _paste(analysis)[1]
    return next((one for one in analysis.proposals if one.overrides.lines == lines), None)


def _advised_setting(analysis: Analysis) -> OfferedTrial | None:
    return next((one for one in analysis.trials if one.name == analysis.recommendation.setting), None)


def _why(analysis: Analysis) -> tuple[str, ...]:
    """What holds it back; then reason and cost of what is advised, a setting or the first proposal."""
    unmeasured = analysis.diagnosis.bottleneck is Bottleneck.INSUFFICIENT_EVIDENCE
    said = [analysis.modelled.statement] if unmeasured and analysis.modelled else [analysis.diagnosis.statement]
    said += [cause.statement for cause in analysis.diagnosis.leading(1)]
    judged = analysis.judgement
    if judged is not None and not judged.is_finding and judged.is_apart:
        said.insert(0, judged.statement)
    situations = ("does_not_fit", "may_not_fit", "near_limit")
    if analysis.proposals and (judged is None or not judged.is_finding):
        situations += ("well_set",)  # without a proposal the verdict says it; and no step is that nobody can explain
    if analysis.situation_statement and analysis.situation in situations:
        said.insert(0, analysis.situation_statement)
    proposal, trial = _advised_proposal(analysis), _advised_setting(analysis)
    if trial is not None:
        said.append(trial.statement)
    elif proposal is not None:
        said += [f"Gain: {one}" for one in proposal.reasoning[:1]] + [f"Cost: {one}" for one in proposal.trade_offs[:1]]
        said += [proposal.test_worth.statement] if proposal.test_worth else []
    return tuple(said)


def _missing(analysis: Analysis) -> str:
    """What to capture, and what that would tell."""
    captures = _captures(analysis.diagnosis.missing)
    return "; ".join([*_missing_log(analysis), *filter(None, [captures])])


def _missing_facts(analysis: Analysis) -> str:
    facts = [gap.what.partition(":")[0].rstrip(".") for gap in analysis.diagnosis.missing]
    return "; ".join([*_missing_log(analysis), *facts])


def _missing_log(analysis: Analysis) -> list[str]:
    measured = analysis.kpis is not None and analysis.kpis.step_time_s is not None
    return (
        []
        if measured or not analysis.diagnosis.missing
        else ["the measured step (--step-time, with a log that shows it)"]
    )


def _captures(gaps: tuple[Gap, ...]) -> str:
    wanted = dict.fromkeys(gap.capture for gap in gaps if gap.capture)
    fullest = [one for one in wanted if not any(other != one and other.startswith(one) for other in wanted)]
    captures = "; ".join(fullest)
    facts = "; ".join(gap.what.rstrip(".") for gap in gaps)
    return f"{captures}, for {facts}" if captures else facts


def _setting(trial: OfferedTrial) -> str:
    if (relative := trial.relative_step_time) is None:
        return trial.title
    fit = fit_words(trial.fit_odds, trial.too_little)
    return f"{trial.title} ({effect(relative, trial.saved_bytes)}{fit}, modelled)"


def _flags(review: FlagReview) -> str:
    kinds = {one.kind: [other.title for other in review.unwise if other.kind == one.kind] for one in review.unwise}
    missing = [f"{one.title} ({listed(list(one.flags), 1)})" for one in review.missing]
    lead = "missing" if review.on_record else "not found on record"
    lacks = [f"{lead}: {listed(missing)}"] if missing else []
    return "; ".join([*(f"{kind}: {listed(titles)}" for kind, titles in kinds.items()), *lacks])
