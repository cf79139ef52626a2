"""What a session measured, as precedents for later runs."""

from collections.abc import Iterator

from asap.core.errors import InsufficientEvidenceError
from asap.history import HistoryRecord, record_from_experiments
from asap.history.from_experiments import record_of_change
from asap.history.record import ChangeKind
from asap.optimize.ideas import plan_in, split_idea, tried_ideas
from asap.optimize.outcome import Code, Configuration
from asap.optimize.request import Request
from asap.optimize.results import best_of, ended, results
from asap.optimize.session import Session
from asap.proposals.typed_change import is_flag


def precedents(request: Request, session: Session) -> list[HistoryRecord]:
    """The best configuration against what ran before, and each that ran out of memory.

    Raises:
        InsufficientEvidenceError: nothing was run, what ran before was not timed, or nothing else was evaluated.
    """
    if request.evaluate != "run":
        raise InsufficientEvidenceError(
            "nothing was measured: only --evaluate run makes precedents", where=session.name
        )
    study = request.study
    before = next(
        (found.step_time_s for found in results(session.tries) if found.configuration == str(study.plan)), None
    )
    if before is None and study.profile is not None:
        before = study.profile.kpis.step_time_s
    if before is None:
        raise InsufficientEvidenceError("what ran before was not timed, so nothing can be compared", where=session.name)
    found, ideas = dict(_changes(session, str(study.plan))), _ideas(request, session)
    if not found and not ideas:
        raise InsufficientEvidenceError("no other configuration was better or ran out of memory", where=session.name)
    return [
        record_from_experiments(
            study.experiment,
            study.experiment.model_copy(update={"id": f"{session.name}-{number}", "plan": plan_in(configuration)}),
            before,
            after,
        )
        for number, (configuration, after) in enumerate(found.items(), 1)
    ] + ideas


def _ideas(request: Request, session: Session) -> list[HistoryRecord]:
    """Each idea that was faster or slower by more than runs differ."""
    timed = [one for one in tried_ideas(session.tries) if one.verdict in ("faster", "slower")]
    return [
        record_of_change(
            request.study.experiment.model_copy(update={"plan": plan_in(one.configuration)}),
            f"{one.idea.partition('=')[0].lstrip('-')}: {one.idea}",
            ChangeKind.FLAG if is_flag(one.idea) else ChangeKind.SETTING,
            (one.before_s or 0.0, one.after_s or 0.0),
            f"{session.name}-idea-{number}",
        )
        for number, one in enumerate(timed, 1)
    ]


def _changes(session: Session, now: Configuration) -> Iterator[tuple[Configuration, float | None]]:
    """Configurations with their step times; none where memory ran out."""
    best = best_of([each for each in session.tries if not split_idea(each.configuration)[1]])
    if best is not None and best.configuration != now:
        yield best.configuration, best.step_time_s
    for each, outcome in ended(session.tries):
        ran_out = outcome.status == "rejected" and Code.OUT_OF_MEMORY in outcome.codes
        if ran_out and not split_idea(each.configuration)[1]:
            yield each.configuration, None
