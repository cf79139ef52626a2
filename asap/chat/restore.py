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
from asap.sharding_memory import Kind, Record, read_session
from asap.sharding_memory.analyses import analysis_index, latest_session, opened_experiment
from asap.study.study import reopen_study

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


def restore(session: str, store: ExperimentStore) -> Conversation:
    """The conversation that a worklog holds.

    Raises:
        NotFoundError: there is no such session, or no analysis in it.
        BadInputError: what it holds cannot be read.
    """
    return restore_from(read_session(session), session, store)


def restore_from(records: Sequence[Record], session: str, store: ExperimentStore) -> Conversation:
    """The conversation in records; raises like :func:`restore`."""
    index = analysis_index(records)
    if index is None:
        raise NotFoundError("holds no analysis to discuss", where=session, hint="asap analyze EXPERIMENT")
    try:
        experiment = Experiment.model_validate(opened_experiment(records[:index]))
        output = records[index].payload["output"]
        analysed = [_candidate(proposal) for proposal in output["proposals"]]
        picks = tuple(candidate.plan for candidate in analysed)
        study = reopen_study(experiment, store)
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


def _candidate(proposal: dict[str, Any]) -> Candidate:
    return Candidate(
        Prediction.model_validate(proposal["prediction"]),
        proposal["score"],
        str(proposal.get("strategy") or ""),
        float(proposal.get("precedent") or 0.0),
        proposal.get("makes_fit") is True,
    )


def _restore_record(conversation: Conversation, record: Record) -> None:
    payload = record.payload
    if record.kind is Kind.NOTE and payload.get("event") == EVIDENCE:
        conversation.add_evidence([StatedFact.model_validate(payload["evidence"])])
    elif record.kind is Kind.RESULT and payload.get("node") == REPLY and payload["output"].get("focus"):
        conversation.focus = Plan.model_validate(payload["output"]["focus"])
