"""The proposals beside what runs now as one table, and the sentence that says what decides their order."""

import math

from asap.core.units import format_bytes, format_change, format_odds, format_seconds
from asap.prediction.prediction import Prediction
from asap.proposals import Proposal
from asap.proposals.selection.candidate import SHOWN_PRECEDENT, SURE_TO_FIT, fit_odds
from asap.proposals.situation import TOO_TIGHT
from asap.reports import phrases
from asap.reports.analysis import Analysis

Row = tuple[str, ...]
PUBLISHED, CHANGES = "published runs", "changes"
_COLUMNS = ("", "step time", "against {} (90 %)", PUBLISHED, "HBM", "fits", "faster", CHANGES)


def proposal_table(analysis: Analysis) -> tuple[Row, list[Row]]:
    """Columns and rows; a column in which nothing is known is left out."""
    measured = analysis.kpis is not None and analysis.kpis.step_time_s is not None
    rows = [_now(analysis)] if measured or analysis.experiment.plan is not None else []
    rows += [_row(proposal, analysis) for proposal in analysis.proposals]
    rows = [row for row in rows if any(row[1:])]
    kept = [0, *(n for n in range(1, len(_COLUMNS)) if any(row[n] for row in rows))]
    baseline = phrases.baseline(analysis).replace("start", "the start")
    return tuple(_COLUMNS[n].format(baseline) for n in kept), [tuple(row[n] for n in kept) for row in rows]


def order_sentence(analysis: Analysis) -> str:
    """What decides the order of the proposals; empty where there is one at most."""
    odds = " divided by the odds that it fits" if _is_tight(analysis) else ""
    if len(analysis.proposals) < 2:
        return ""
    added = _precedents(analysis)
    moved = f" Published runs count in this order (gain {added}), and in no figure." if added else ""
    if analysis.incumbent is None or phrases.is_assumed(analysis):
        return f"Ordered by the expected step time{odds}.{moved}"
    if analysis.situation in TOO_TIGHT:
        order = "Ordered" if analysis.recommendation.lines else "The smallest change is first, the others ordered"
        order += f" by the upper end of the step time's interval{odds}"
        return f"What runs now {TOO_TIGHT[analysis.situation]}. {order}.{moved}"
    fits = ", and that it fits" if _is_tight(analysis) else ""
    return f"Ordered by gain, weighed with the odds that it is faster{fits}.{moved}"


def _precedents(analysis: Analysis) -> str:
    """What precedents add to the gain of each proposal; empty where they add nothing to any."""
    added = [one.precedent for one in analysis.proposals]
    if not any(abs(one) >= SHOWN_PRECEDENT for one in added):
        return ""
    return ", ".join(format_change(math.exp(one)) for one in added)


def changed(proposal: Proposal) -> str:
    """``data 16→64, model 16→2``; the whole plan where there is none to compare with."""
    return ", ".join(map(str, proposal.settings)) or str(proposal.plan)


def _now(analysis: Analysis) -> Row:
    incumbent, kpis = analysis.incumbent, analysis.kpis
    measured = kpis.step_time_s if kpis else None
    modelled = incumbent.step_time.value if incumbent and incumbent.step_time else None
    step = f"{format_seconds(measured)} measured" if measured else f"{format_seconds(modelled)}" if modelled else ""
    if measured and modelled and analysis.judgement is not None and analysis.judgement.is_finding:
        step += f", {format_seconds(modelled)} modelled"
    memory = incumbent.memory if incumbent else None
    held = f"{format_bytes(memory.total.value)}{phrases.fit_mark(memory)}" if memory else ""
    hbm = f"{held} of {format_bytes(memory.capacity_bytes)}" if memory else ""
    odds = _odds(incumbent, analysis) if incumbent else ""
    return (phrases.baseline(analysis), step, "", "", hbm, odds, "", "")


def _is_tight(analysis: Analysis) -> bool:
    """Whether it is open for some proposal whether it fits."""
    shown = [proposal.prediction for proposal in analysis.proposals]
    return any(fit_odds(one) < SURE_TO_FIT for one in (*shown, analysis.incumbent) if one is not None)


def _odds(prediction: Prediction, analysis: Analysis) -> str:
    memory = prediction.memory
    known = memory is not None and memory.probability_fits
    return format_odds(known) if known and _is_tight(analysis) else ""


def _row(proposal: Proposal, analysis: Analysis) -> Row:
    prediction = proposal.prediction
    step = prediction.step_time
    change = phrases.percent_change(prediction.relative_step_time) if prediction.relative_step_time else ""
    change += " a token" if change and prediction.plan.global_batch else ""
    time = "" if step is None else format_seconds(step.value) if change else phrases.written(step)
    fits = _odds(prediction, analysis)
    told = _precedents_decide(analysis) and abs(proposal.precedent) >= SHOWN_PRECEDENT
    elsewhere = format_change(math.exp(-proposal.precedent)) if told else ""
    is_open = analysis.situation in TOO_TIGHT or phrases.is_assumed(analysis)
    chance = "" if is_open or not proposal.confidence.faster else format_odds(proposal.confidence.faster.value)
    return (str(proposal.rank), time, change, elsewhere, _hbm(prediction), fits, chance, changed(proposal))


def _precedents_decide(analysis: Analysis) -> bool:
    """Whether a proposal stands before one that is modelled to be faster, as published runs speak for it."""
    shown = [(one.prediction.relative_step_time, one.precedent) for one in analysis.proposals]
    known = [(relative.value, precedent) for relative, precedent in shown if relative is not None]
    return any(
        mine > others and for_mine > for_others
        for n, (mine, for_mine) in enumerate(known)
        for others, for_others in known[n + 1 :]
    )


def _hbm(prediction: Prediction) -> str:
    """``14.0 of 16.0 GiB``, predicted unless it says that it was compiled."""
    memory = prediction.memory
    if memory is None:
        return ""
    by_compiler = ", compiled" if phrases.is_compiled(memory) else ""
    return f"{format_bytes(memory.total.value)}{phrases.fit_mark(memory)}{by_compiler}"
