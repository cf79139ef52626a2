"""Opens a conversation from the worklog of its session, so that any process can continue where another one stopped."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from asap.agents.settings import Settings
from asap.agents.workflow.compiled_note import recorded_compile_options
from asap.chat.conversation import Conversation
from asap.chat.evidence import StatedFact
from asap.compiler.programs.options import REFERENCE_STEP
from asap.core.errors import BadInputError, NotFoundError
from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.ranking import Candidate
from asap.sharding_memory import Kind, Record, read_session, sessions
from asap.study.study import open_study

EVIDENCE = "evidence"
REPLY = "reply"


def open_conversation(
    target: str,
    store: ExperimentStore,
    settings: Settings | None = None,
    session: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Conversation:
    """Continue a session of an experiment, the latest by default; if there is none, analyse the experiment first.

    Raises:
        AsapError: what :func:`asap.agents.workflow.analyze.analyze` or :func:`restore` raises.
    """
    found = session or latest_session(target)
    if found is None:
        from asap.agents.workflow.analyze import analyze

        found = analyze(target, store=store, settings=settings, progress=progress).analysis.session
    return restore(found, store)


def latest_session(experiment: str) -> str | None:
    """The newest session that analysed an experiment to its end."""
    for name in reversed(sessions()):
        records = read_session(name)
        if _analysis(records, experiment) is not None and not _is_replay(records):
            return name
    return None


def restore(session: str, store: ExperimentStore) -> Conversation:
    """The conversation that a worklog holds.

    Raises:
        NotFoundError: there is no such session, or no analysis in it.
        BadInputError: what it holds cannot be read.
    """
    return restore_from(read_session(session), session, store)


def restore_from(records: Sequence[Record], session: str, store: ExperimentStore) -> Conversation:
    """The conversation in records; raises like :func:`restore`."""
    index = _analysis(records)
    if index is None:
        raise NotFoundError("holds no analysis to discuss", where=session, hint="asap analyze EXPERIMENT")
    try:
        experiment = Experiment.model_validate(_last_opened(records[:index]))
        output = records[index].payload["output"]
        analysed = [_candidate(proposal) for proposal in output["proposals"]]
        picks = tuple(candidate.plan for candidate in analysed)
        target = experiment.id if store.has(experiment.id) else experiment.profile_path or experiment.id
        study = open_study(target, store, lambda _: experiment)
        known, compile_options = (
            {one.plan: one for one in analysed},
            recorded_compile_options(records[:index]) or REFERENCE_STEP,
        )
        conversation = Conversation(session, study, picks, store, known, compile_options)
        for record in records[index:]:
            _restore_record(conversation, record)
    except (ValidationError, KeyError, TypeError) as error:
        raise BadInputError("its records are not a readable conversation", where=session) from error
    return conversation


def _analysis(records: Sequence[Record], experiment: str | None = None) -> int | None:
    for index in range(len(records) - 1, -1, -1):
        payload = records[index].payload
        if records[index].kind is Kind.RESULT and payload.get("node") == "analysis":
            known = payload["output"]["experiment"]["id"]
            return index if experiment in (None, known) else None
    return None


def _is_replay(records: Sequence[Record]) -> bool:
    return any(record.kind is Kind.NOTE and record.payload.get("event") == "replay" for record in records[:1])


def _candidate(proposal: dict[str, Any]) -> Candidate:
    return Candidate(Prediction.model_validate(proposal["prediction"]), proposal["score"])


def _last_opened(records: Sequence[Record]) -> object:
    notes = (r.payload for r in reversed(records) if r.kind is Kind.NOTE and r.payload.get("event") == "opened")
    return next(notes, {})["experiment"]


def _restore_record(conversation: Conversation, record: Record) -> None:
    payload = record.payload
    if record.kind is Kind.NOTE and payload.get("event") == EVIDENCE:
        conversation.add_evidence([StatedFact.model_validate(payload["evidence"])])
    elif record.kind is Kind.RESULT and payload.get("node") == REPLY and payload["output"].get("focus"):
        conversation.focus = Plan.model_validate(payload["output"]["focus"])
