"""``analyze``: one run of the agents over one experiment, from outside a plain function."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.llm.models import check_model
from asap.agents.llm.roles import ROLES, AgentTurn, ToolCall
from asap.agents.llm.usage import Usage, usage_entry
from asap.agents.settings import BUILTIN, Settings, read_settings
from asap.agents.workflow.nodes import Nodes
from asap.agents.workflow.protocol import SCHEMAS, AnalysisRequest
from asap.answers.inquiries import Inquiries
from asap.compiler.programs.options import CompileOptions
from asap.core.errors import AsapError, BadInputError, InsufficientEvidenceError, NotFoundError, ServiceError
from asap.core.secrets import redacted
from asap.evidence.fact import EVIDENCE, StatedFact
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.create import NOTHING_STATED, Statement, said_of
from asap.experiments.create import amend as amended
from asap.proposals import ProposalSet
from asap.reports.analysis import Analysis, assemble
from asap.sharding_memory import INTERRUPTED, Kind, Record, Worklog, new_session_name
from asap.sharding_memory.analyses import StoredAnalysis, standing_facts, stored_analysis
from asap.study.open_study import open_study, opened_path
from asap.study.study import NO_PREFERENCES, Preferences, Study

_EVENT = "compiled"


def recorded_compile_options(records: Sequence[Record]) -> CompileOptions | None:
    """How plans were compiled last; ``None`` if none were."""
    notes = (r.fields for r in reversed(records) if r.kind is Kind.NOTE and r.fields.get("event") == _EVENT)
    note = next(notes, None)
    return None if note is None else CompileOptions.from_record(note.get("choice", {}))


@dataclass(frozen=True)
class AnalysisOutcome:
    """An analysis of an experiment, and the failures of its worklog and of the agents, if any."""

    experiment: Experiment
    analysis: Analysis
    worklog_failure: AsapError | None
    failure: ServiceError | None = None

    @property
    def stored(self) -> StoredAnalysis:
        """As its session holds it; without the steps, where the worklog failed."""
        try:
            return stored_analysis(self.analysis.session)
        except (NotFoundError, BadInputError):
            return StoredAnalysis(self.analysis.session, datetime.now(UTC), self.experiment, self.analysis, ())


def analyze(
    target: str,
    *,
    store: ExperimentStore,
    stated: Statement = NOTHING_STATED,
    amend: Callable[[Experiment], Experiment] | None = None,
    overrides: Sequence[str] = (),
    settings: Settings | None = None,
    session: str | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    compile_options: CompileOptions | None = None,
    preferences: Preferences = NO_PREFERENCES,
    facts: Sequence[StatedFact] | None = (),
) -> AnalysisOutcome:
    """Have the agents analyse an experiment.

    Args:
        target: what :func:`asap.study.open_study.open_study` takes.
        store: where experiments are kept.
        stated: what the user states beside the record.
        amend: puts another record in its place; by default what is stated is laid over it.
        overrides: ``key=value`` for a configuration.
        settings: the language model and its limits; the user's by default.
        session: name of the worklog; a new one by default.
        progress: called with what is being done.
        compile_options: how to compile the baseline and the best plans with the TPU compiler; by default nothing is
            compiled.
        preferences: what the user asks beside the record.
        facts: on record from the beginning; ``None``: those that its user put on record in the run's latest session.

    Raises:
        UsageError: no such model is known, or it lacks its key, its extra or its address.
        ServiceError: no server answers at the model's address. If the model fails later, or the user interrupts it,
            the engine's own result is returned, with the ``failure``.
        AsapError: whatever :func:`asap.study.open_study.open_study` raises.
    """
    settings = settings or read_settings()
    worklog = Worklog(session or new_session_name())
    worklog.append(Kind.USER_INPUT, {"text": f"analyze {target}", "model": settings.model})
    try:
        studies = Inquiries(store)
        check_model(settings.model)
        amend = amend or (lambda record: amended(record, stated))
        study = open_study(target, store, amend, overrides=overrides, progress=progress)
        study = replace(study, preferences=preferences)
        path, said = opened_path(target, store), said_of(stated, overrides)
        facts = standing_facts(study.experiment, path, said) if facts is None else facts
        worklog.append(Kind.NOTE, _opened(study, path, said))
        for fact in facts:
            worklog.append(Kind.NOTE, {"event": EVIDENCE, "evidence": fact.model_dump(mode="json")})
        studies.add(note_facts(study, facts, target) if facts else study)
        study = studies.recorded(study.experiment.id, facts)
        if compile_options is not None:
            verdicts = _compile(studies, study, compile_options, progress)
            worklog.append(Kind.NOTE, {"event": _EVENT, "choice": compile_options.to_record(), "verdicts": verdicts})
        analysis, failure = _analyze(studies, study, settings, worklog, progress)
    except KeyboardInterrupt:
        worklog.append(Kind.NOTE, {"event": INTERRUPTED})
        raise
    except Exception as error:
        worklog.append(Kind.ERROR, {"where": "analysis", "type": type(error).__name__, "message": str(error)})
        raise
    worklog.append(Kind.RESULT, {"node": "analysis", "output": analysis.model_dump(mode="json", by_alias=True)})
    return AnalysisOutcome(study.experiment, analysis, worklog.failed, failure)


def note_facts(study: Study, facts: Sequence[StatedFact], target: str) -> Study:
    """A study that says which facts of an earlier session hold for it."""
    note = (
        f"on record from an earlier chat: {'; '.join(map(str, facts))} (`asap chat {target}`: forget 1 takes it back)"
    )
    return replace(study, experiment=study.experiment.knowing(first=(note,)), warnings=(note, *study.warnings))


def _opened(study: Study, path: str | None, said: list[str]) -> dict[str, Any]:
    """The note by which a session is found and opened again."""
    preferred = {} if study.preferences == NO_PREFERENCES else {"preferences": study.preferences.to_record()}
    named = {name: value for name, value in (("path", path), ("stated", said)) if value}
    return {"event": "opened", "experiment": study.experiment, **named, **preferred}


def _compile(
    studies: Inquiries, study: Study, options: CompileOptions, progress: Callable[[str], None]
) -> dict[str, str]:
    """Take the compiler's evidence into the candidates, and return its verdicts by plan; none without candidates."""
    from asap.proposals.rank_compiled import rank_compiled, verdicts

    try:
        ranked = studies.candidates(study.experiment.id)
    except InsufficientEvidenceError:
        return {}
    found = rank_compiled(ranked, options, progress)
    studies.replace_candidates(found)
    return verdicts(found)


def _analyze(
    studies: Inquiries, study: Study, settings: Settings, worklog: Worklog, progress: Callable[[str], None]
) -> tuple[Analysis, ServiceError | None]:
    if settings.model == BUILTIN:
        proposals, failure = run_planner(studies, study.experiment.id, worklog, progress), None
    else:
        from asap.agents.workflow.adk_run import run_agents

        proposals, failure = run_agents(studies, study.experiment.id, settings, worklog, progress)
    reason = redacted(str(failure)) if failure else None
    return assemble(study, proposals, worklog.session, settings.model, reason), failure


def run_planner(studies: Inquiries, experiment: str, worklog: Worklog, progress: Callable[[str], None]) -> ProposalSet:
    """The analysis with the built-in model: each role answers what the node before it found, the node after it checks
    the answer, every step is logged. google-adk, which takes longer to load than this to run, is not loaded."""
    nodes = Nodes(studies, Catalogues())

    def keep(node: str, output: dict[str, Any]) -> None:
        worklog.append(Kind.RESULT, {"node": node, "output": output})

    found = nodes.open_experiment(AnalysisRequest(experiment=experiment))
    keep("open_experiment", found)
    after: Sequence[Callable[[Any], dict[str, Any]]] = (nodes.assess, nodes.choose, nodes.assemble)
    for (role, (schema, _)), node in zip(SCHEMAS.items(), after, strict=True):
        progress(f"{role}: answers")
        asked = json.dumps(found)
        worklog.append(
            Kind.MODEL_REQUEST, {"agent": role, "model": BUILTIN, "contents": [{"parts": [{"text": asked}]}]}
        )
        (call,) = ROLES[role](AgentTurn(asked))
        assert isinstance(call, ToolCall)
        part = {"function_call": {"name": call.tool, "args": call.arguments}}
        worklog.append(Kind.MODEL_RESPONSE, {"agent": role, "content": {"role": "model", "parts": [part]}})
        answer: Any = schema.model_validate(call.arguments)
        keep(role, answer.model_dump(mode="json"))
        found = node(answer)
        keep(node.__name__, found)
    worklog.append(Kind.NOTE, usage_entry(Usage(model=BUILTIN, calls=len(SCHEMAS), cost=0.0, price_source="runs here")))
    assert nodes.finished is not None
    return nodes.finished
