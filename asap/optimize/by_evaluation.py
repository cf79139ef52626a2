"""The loop over the configurations of a run: session, evaluator, proposer and rule put together."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

from asap.core.errors import UsageError
from asap.core.units import counted, format_percent
from asap.optimize.ideas import TriedIdea, WithIdeas, tried_ideas
from asap.optimize.loop import Making, engine_alone, optimize
from asap.optimize.outcome import Suggestion, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.proposers.study_prior import GuidedPlans, Searched
from asap.optimize.report import OptimizationReport, best_measured, spent_on
from asap.optimize.request import Request
from asap.optimize.results import language_model_record, results, step_times
from asap.optimize.session import Session, only_session
from asap.optimize.stopping import Stopped, Worth
from asap.sharding_memory import readable

Show = Callable[[OptimizationReport, Worth | None], None]
_WORTH_SAYING = 0.03  # difference to the model from which on it is printed; judgement: what is printed


def optimize_by_evaluation(
    request: Request,
    session: Session,
    *,
    show: Show = lambda report, worth: None,
    report: Callable[[str], None] = lambda line: None,
    proposer: Making = engine_alone,
) -> OptimizationReport:
    """Run the loop, from where the session stands to its end.

    Args:
        request: what was asked for.
        session: new or resumed.
        show: called after each change.
        report: called with what a try is doing.
        proposer: makes the proposer; the built-in one by default.

    Raises:
        InsufficientEvidenceError: too little is known to search configurations.
        UsageError: another session measures the same experiment.
    """
    searched = Searched.of(request.study)
    guided = _guided(request, searched)

    def update(session: Session, suggestion: Suggestion | None, worth: Worth | None) -> None:
        del suggestion
        show(_report(request, session, guided, searched.found.considered, None), worth)

    measures = request.evaluate == "run"
    with only_session(request.experiment.id) if measures else nullcontext():
        evaluator = request.evaluator(session.name, report, step_times(session.tries))
        engine = GuidedPlans(request.study, guided)
        proposed = WithIdeas(proposer(session, engine), request.ideas, request.budget.evaluations)
        stopped = optimize(session, proposed, evaluator, request.rule(searched.modelled_s), update, guided.repaired)
    return _report(request, session, guided, searched.found.considered, stopped)


def _guided(request: Request, searched: Searched) -> ModelGuided:
    guided = searched.proposer(compiled=request.evaluate == "compiler")
    return replace(guided, said=cache(request.asked)) if request.evaluate == "run" else guided


def open_session(name: str) -> tuple[Request, Session]:
    """A session of an experiment on record, and what was asked for; raises like :meth:`Session.resume`."""
    session = Session.resume(name)
    if "space" in session.settings:
        raise UsageError("searched a space of your own, which is of no experiment", where=name)
    with readable(name):
        return Request.model_validate(session.settings), session


def report_of(request: Request, session: Session) -> OptimizationReport:
    """The report of a session as it stands; raises like :func:`optimize_by_evaluation`."""
    searched = Searched.of(request.study)
    return _report(request, session, _guided(request, searched), searched.found.considered, session.stopped)


def _report(
    request: Request, session: Session, guided: ModelGuided, considered: int, stopped: Stopped | None
) -> OptimizationReport:
    def lines(configuration: str) -> str:
        return "\n".join(request.overrides(configuration).lines)

    tries, known = session.tries, "compiled" if request.evaluate == "compiler" else "measured"
    best = best_measured(tries, guided.believed(tries), guided.known, guided.first, lines)
    fared = map(_fared, tried_ideas(tries))
    return OptimizationReport(
        experiment=request.experiment.id, session=session.name, evaluator=request.evaluate, considered=considered,
        tries=tuple(tries), best=best, stopped=stopped, spent=spent_on(tries),
        learnt=(*_learnt(guided, tries, known), *_undecided(tries), *language_model_record(tries), *fared),
    )  # fmt: skip


def _learnt(guided: ModelGuided, tries: list[Try], known: str) -> list[str]:
    """How measured or compiled steps lie against the model's, where there are several."""
    ratios = sorted(guided.against_the_model(tries))
    if len(ratios) < 2:
        return []
    low, high = ratios[0] - 1, ratios[-1] - 1
    if max(abs(low), abs(high)) < _WORTH_SAYING:
        return [f"{known} within {format_percent(_WORTH_SAYING, 0)} of the model"]
    return [f"{known} {_signed(low)} to {_signed(high)} against the model; what was tried later allows for it"]


def _undecided(tries: list[Try]) -> Iterator[str]:
    """That configurations whose step is only known to be at most so long may beat the best."""
    slower = results(tries)[1:]
    if undecided := sum(each.at_most for each in slower):
        yield (
            f"compiled with reduced effort alone, which overstates a step: {counted(undecided, 'configuration')} that"
            " may be faster than the best; a longer --time-limit tells"
        )


def _fared(idea: TriedIdea) -> str:
    """What became of an idea, in a line."""
    if idea.ratio is None or idea.low is None or idea.high is None:
        return f"{idea.idea}: {idea.why or 'it was not timed'}"
    ends = f"{_signed(idea.low - 1)} to {_signed(idea.high - 1)} at 90 %"
    return f"{idea.idea}: {_signed(idea.ratio - 1)} step time ({ends}): {idea.verdict}"


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else '-'}{format_percent(abs(share), 0)}"
