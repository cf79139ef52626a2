"""``analyze``: one run of the agents over one experiment, from outside a plain function."""

from collections.abc import Callable
from dataclasses import dataclass

from asap.agents.compiled_note import compiled_note
from asap.agents.desk import Desk
from asap.agents.engine import engine_proposals
from asap.agents.preflight import check_model
from asap.agents.settings import Settings, read_settings
from asap.compiler.choice import Choice
from asap.core.errors import AsapError, InsufficientEvidenceError, ServiceError
from asap.diagnosis.study import Study, open_study
from asap.experiments import Experiment, ExperimentStore
from asap.reports.analysis import Analysis, assemble
from asap.sharding_memory import Kind, Worklog, new_session_name, redacted


@dataclass(frozen=True)
class Outcome:
    """An analysis, what kept its worklog from being whole, and what kept the agents from answering."""

    analysis: Analysis
    worklog_failure: AsapError | None
    failure: ServiceError | None = None


def analyze(
    target: str,
    *,
    store: ExperimentStore,
    amend: Callable[[Experiment], Experiment] | None = None,
    model: str | None = None,
    session: str | None = None,
    progress: Callable[[str], None] | None = None,
    compile_by: Choice | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
) -> Outcome:
    """Have the agents analyse an experiment.

    Args:
        target: an ID of the store, a log directory, a run folder or an ``*.xplane.pb``.
        store: where experiments are kept.
        amend: fills in what the user states beside the record.
        model: name of the language model behind the agents; as set by the user by default.
        session: name of the worklog; a new one by default.
        progress: told what is being done.
        compile_by: how the real TPU compiler is asked for the baseline and the best plans before they are shown; it
            is not asked by default.
        max_calls: of the model in this run.
        max_tokens: in this run, in and out.
        max_cost: in this run, US dollars.

    Raises:
        UsageError: no such model is known, or it lacks its key, its extra or its address.
        ServiceError: nobody listens where the model should be. A model that fails later costs only its judgement:
            the engine's own result is returned, with the ``failure``.
        AsapError: whatever :func:`asap.diagnosis.study.open_study` raises.
    """
    settings = read_settings(model=model, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    worklog = Worklog(session or new_session_name())
    worklog.append(Kind.USER_INPUT, {"text": f"analyze {target}", "model": settings.model})
    try:
        desk = Desk(store)
        study = _open(desk, target, amend, settings, worklog, progress or _unheard)
        if compile_by is not None:
            verdicts = _compile(desk, study, compile_by, progress or _unheard)
            worklog.append(Kind.NOTE, compiled_note(compile_by, verdicts))
        analysis, failure = _analyze(desk, study, settings, worklog, progress or _unheard)
    except KeyboardInterrupt:
        worklog.append(Kind.NOTE, {"event": "interrupted"})
        raise
    except Exception as error:
        worklog.append(Kind.ERROR, _error_entry(error))
        raise
    worklog.append(Kind.RESULT, {"node": "analysis", "output": analysis.model_dump(mode="json", by_alias=True)})
    return Outcome(analysis, worklog.failed, failure)


def _open(
    desk: Desk,
    target: str,
    amend: Callable[[Experiment], Experiment] | None,
    settings: Settings,
    worklog: Worklog,
    progress: Callable[[str], None],
) -> Study:
    check_model(settings.model)
    study = open_study(target, desk.store, amend, progress=progress)
    worklog.append(Kind.NOTE, {"event": "opened", "experiment": study.experiment})
    desk.put(study)
    return study


def _compile(desk: Desk, study: Study, choice: Choice, progress: Callable[[str], None]) -> dict[str, str]:
    """Take the compiler's evidence into the candidates, and return its verdicts by plan.

    Where there are no candidates nothing is compiled, and the agents say why.
    """
    from asap.proposals.compiled import compiled_field, verdicts

    try:
        survey = desk.survey(study.experiment.id)
    except InsufficientEvidenceError:
        return {}
    found = compiled_field(survey, choice, progress)
    desk.lay(found)
    return verdicts(found)


def _analyze(
    desk: Desk, study: Study, settings: Settings, worklog: Worklog, progress: Callable[[str], None]
) -> tuple[Analysis, ServiceError | None]:
    from asap.agents.runner import run_agents

    try:
        proposals, failure = run_agents(desk, study.experiment.id, settings, worklog, progress), None
    except ServiceError as error:
        worklog.append(Kind.ERROR, _error_entry(error))
        proposals, failure = engine_proposals(desk, study.experiment.id), error
    reason = redacted(str(failure)) if failure else None
    return assemble(study, proposals, worklog.session, settings.model, reason), failure


def _error_entry(error: Exception) -> dict[str, str]:
    return {"where": "analysis", "type": type(error).__name__, "message": str(error)}


def _unheard(stage: str) -> None:
    """Nobody asked for progress."""
