"""The best configuration by the model alone: all of the space, in one pass."""

import math
from collections.abc import Iterator, Sequence

from asap.answers.inquiry import Inquiry
from asap.core.feedback import Feedback
from asap.core.units import (
    HOUR,
    Provenance,
    format_bytes,
    format_change,
    format_odds,
    format_percent,
    format_seconds,
    significant,
)
from asap.evidence.fact import StatedFact
from asap.optimize.outcome import Code, Cost, Expectation, Outcome, Try, feedback
from asap.optimize.report import Best, OptimizationReport
from asap.optimize.stopping import Stopped
from asap.prediction.prediction import MemoryPrediction, Prediction
from asap.proposals.launch import start_line
from asap.proposals.proposal import Proposal
from asap.proposals.propose import propose
from asap.proposals.recommend import add_trial, recommend
from asap.proposals.selection.candidate import SURE_TO_FIT, fit_odds, log_interval
from asap.proposals.selection.choice import MEASURABLE
from asap.proposals.test_worth import STEPS, WARM_UP_STEPS
from asap.proposals.trials import most_promising
from asap.study.start import ASSUMED
from asap.study.study import Study

_MEASURED = 3  # proposals that a session would run first
REGRETS = ((0.014, 0.0, 62), (1.375, 0.516, 13))
"""Mean share by which the first choice, and the best of three, took longer than the fastest run of its group, and how
many groups: of published runs that no fit has seen, and of sealed ones, which are unlike those (docs/accuracy.md)."""


def optimize_by_model(study: Study, facts: Sequence[StatedFact] = ()) -> OptimizationReport:
    """What to run by the model and after the facts, without a session.

    Raises:
        InsufficientEvidenceError: too little is known to predict any plan.
    """
    inquiry = Inquiry(study)
    inquiry.record(facts)
    ranked, study = inquiry.revised.ranked, inquiry.study
    found = propose(ranked, lambda study, plan: (), inquiry.proposals)
    now, first = found.incumbent, next(iter(found.proposals), None)
    start = start_line(study)
    tries = [_try(1, now, "what runs now" if start is None else ASSUMED)] if now else []
    first_new = len(tries) + 1
    tries += [_try(number, each.prediction, each.title) for number, each in enumerate(found.proposals, first_new)]
    advice = recommend(
        found.proposals, found.considered, found.situation, study.diagnosis.bottleneck, str(first_new), start
    )
    advice = add_trial(advice, most_promising(found.trials), first.prediction if first else None, found.situation)
    situation = found.situation.statement if found.situation else ""
    chips = study.slice.chips if study.slice else 0
    three = first_three([each.prediction for each in found.proposals], chips)
    offer = (three,) if three and not advice.keep_incumbent else ()
    judged = (found.judgement.statement,) if found.judgement and found.judgement.is_finding else ()
    kept = (advice.statement,) if advice.keep_incumbent or advice.setting else ()
    best = _kept(now, start) if advice.keep_incumbent and now else _proposed(first, start) if first else None
    bets = worse_bets(found.proposals, first_new, start is not None)
    return OptimizationReport(
        experiment=study.experiment.id, evaluator="model", considered=found.considered, tries=tuple(tries), best=best,
        stopped=Stopped(reason="nothing_left", statement=situation or advice.statement), spent=Cost(seconds=0.0),
        learnt=(*judged, *kept, *bets, *offer, *found.warnings), trials=found.trials,
    )  # fmt: skip


def worse_bets(proposals: Sequence[Proposal], first_number: int, nothing_runs: bool = False) -> Iterator[str]:
    """Why the first of some proposals is the best although a later one is faster by the model; one line each.

    What counts against it is what decides the order (:mod:`asap.proposals.selection.candidate`).
    """
    for number, each in enumerate(proposals, first_number):
        memory = each.prediction.memory
        if memory and _seconds(each) < (1 - MEASURABLE) * _seconds(proposals[0]):
            against = _at_worst(each, proposals[0], first_number) if each.makes_fit else _odds_of_gain(each)
            against = "" if nothing_runs else against
            yield f"{number} is faster by the model, but the worse bet: {_odds_of_fit(memory)}{against}."


def _odds_of_fit(memory: MemoryPrediction) -> str:
    odds = memory.probability_fits if memory.probability_fits is not None else float(memory.fits)
    return f"P(fits) {format_odds(odds)}"


def _odds_of_gain(proposal: Proposal) -> str:
    odds = proposal.confidence.faster
    return f", P(faster) {format_odds(odds.value)}" if odds else ""


def _at_worst(proposal: Proposal, first: Proposal, first_number: int) -> str:
    """The upper ends of two intervals, where the first is the lower one."""
    most, least = (each.prediction.relative_step_time for each in (proposal, first))
    if most is None or least is None:
        return ""
    ends = [half - gain for gain, half in map(log_interval, (most, least))]
    if ends[0] <= ends[1]:
        memory = first.prediction.memory
        return f", that of {first_number} {_odds_of_fit(memory).removeprefix('P(fits) ')}" if memory else ""
    upper, of_first = (format_change(math.exp(end), 0) for end in ends)
    return f", the upper end of its interval is {upper} against what runs now, that of {first_number} {of_first}"


def _seconds(proposal: Proposal) -> float:
    step = proposal.prediction.step_time
    return step.value if step else math.inf


def _try(number: int, prediction: Prediction, why: str) -> Try:
    step, memory = prediction.step_time, prediction.memory
    held = memory.total.value if memory else None
    too_large = memory is not None and not memory.fits
    return Try(
        number=number, configuration=str(prediction.plan), why=why, predicted=Expectation.of(prediction),
        outcome=Outcome(
            status="rejected" if too_large else "done", step_time_s=step.value if step else None, hbm_bytes=held,
            provenance=Provenance.MODELLED, feedback=(_too_large(memory),) if memory and too_large else (),
        ),
        cost=Cost(seconds=0.0),
    )  # fmt: skip


def _too_large(memory: MemoryPrediction) -> Feedback:
    over = format_bytes(memory.total.value - memory.capacity_bytes)
    most = max(memory.parts, key=lambda part: part.size_bytes, default=None)
    of = f", most of it {most.name}" if most else ""
    odds = f"; {_odds_of_fit(memory)}" if memory.verdict == "may not fit" else ""
    much = f"{over} too much for {format_bytes(memory.capacity_bytes)}{of}{odds}"
    return feedback(Code.OUT_OF_MEMORY, f"{memory.verdict}: {much}")


def _kept(now: Prediction, start: str | None) -> Best:
    evidence = "it is what runs now" if start is None else "it is the start that was assumed; the model alone"
    return Best(
        configuration=str(now.plan), step_time_s=now.step_time.value if now.step_time else None,
        provenance=Provenance.MODELLED, evidence=evidence, saves=None if start else 0.0,
        lines=tuple((start or "").splitlines()),
    )  # fmt: skip


def _proposed(proposal: Proposal, start: str | None) -> Best:
    step, relative = proposal.prediction.step_time, proposal.prediction.relative_step_time
    memory = proposal.prediction.memory
    tight = f"{_odds_of_fit(memory)}; " if memory and fit_odds(proposal.prediction) < SURE_TO_FIT else ""
    return Best(
        configuration=str(proposal.plan), step_time_s=step.value if step else None, provenance=Provenance.MODELLED,
        evidence=f"the model alone; {tight}--evaluate compiler or --evaluate run tests it",
        saves=1 - relative.value if relative and not proposal.makes_fit and start is None else None,
        lines=proposal.overrides.lines,
    )  # fmt: skip


def first_three(candidates: Sequence[Prediction], chips: int) -> str | None:
    """The offer of short runs of the first candidates on so many chips; ``None`` where not two have a step time."""
    steps = [each.step_time.value for each in candidates if each.step_time is not None][:_MEASURED]
    if len(steps) < 2:
        return None
    seconds = sum(steps) * (WARM_UP_STEPS + STEPS)
    cost = f"{format_seconds(seconds)}, {significant(chips * seconds / HOUR, 2)} chip-hours beside start-up"
    seen, unlike = (f"{format_percent(first)} (the best of three {format_percent(best)})" for first, best, _ in REGRETS)
    return (
        f"Measure the first {len(steps)} (--evaluate run --budget {len(steps)}): {WARM_UP_STEPS + STEPS} steps each,"
        f" {cost}. In {REGRETS[0][2]} groups of published runs no fit has seen, the first choice took {seen} longer"
        f" than the fastest; in {REGRETS[1][2]} groups unlike those fitted, {unlike}."
    )
