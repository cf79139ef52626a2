"""Opens a conversation from the worklog of its session, so that any process can continue where another one stopped."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from asap.agents.settings import Settings
from asap.agents.workflow.analyze import recorded_compile_options
from asap.answers.inquiry import Inquiry
from asap.chat.conversation import Conversation
from asap.chat.language import parse
from asap.compiler.programs.options import REFERENCE_STEP
from asap.core.errors import NotFoundError
from asap.evidence.fact import EVIDENCE, RETRACTION, StatedFact
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.create import NOTHING_STATED, Statement, said_of
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import Candidate
from asap.sharding_memory import Kind, Record, read_session, readable
from asap.sharding_memory.analyses import (
    analysis_index,
    latest_session,
    opened_experiment,
    opened_preferences,
    opening_index,
    stated_beside,
)
from asap.study.open_study import experiment_id, opened_path, reopen_study
from asap.study.study import Preferences

REPLY = "reply"


def open_conversation(
    target: str,
    store: ExperimentStore,
    settings: Settings | None = None,
    session: str | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    *,
    stated: Statement = NOTHING_STATED,
    overrides: Sequence[str] = (),
) -> Conversation:
    """Continue a session of an experiment, by default the latest in which the same was stated of the run beside its
    record, or the latest of all where nothing is. If there is none, analyse the experiment first.

    Raises:
        AsapError: what :func:`asap.agents.workflow.analyze.analyze` or :func:`restore` raises.
    """
    said = said_of(stated, overrides)
    found = session or latest_session(experiment_id(target, store), opened_path(target, store), said)
    if found is None:
        from asap.agents.workflow.analyze import analyze

        found = analyze(
            target, store=store, stated=stated, overrides=overrides, settings=settings,
            progress=progress,
        ).analysis.session  # fmt: skip
    return restore(found, store)


def restore(session: str, store: ExperimentStore) -> Conversation:
    """The conversation that a worklog holds.

    Raises:
        NotFoundError: there is no such session, or no analysis in it.
        BadInputError: what it holds cannot be read.
    """
    records = read_session(session)
    index = analysis_index(records)
    if index is None:
        interrupted = opened_experiment(records) is not None
        reason = "its analysis was interrupted before the result" if interrupted else "holds no analysis"
        raise NotFoundError(f"{reason}: nothing to discuss", where=session, hint="`asap analyze EXPERIMENT` runs it")
    with readable(session):
        experiment = Experiment.model_validate(opened_experiment(records[:index]))
        preferences = Preferences.from_record(opened_preferences(records[:index]))
        known = {one.plan: one for one in map(_candidate, records[index].fields["output"]["proposals"])}
        compile_options = recorded_compile_options(records[:index]) or REFERENCE_STEP
    study = replace(reopen_study(experiment, store), preferences=preferences)
    inquiry, time = Inquiry(study, store, tuple(known), known), f"{records[index].time:%Y-%m-%d %H:%M} UTC"
    conversation = Conversation(session, inquiry, compile_options, time, stated_beside(records[:index]))
    for record in records[opening_index(records[:index]) or 0 :]:
        with readable(session):
            _replay(record, conversation)
    return conversation


def _candidate(proposal: dict[str, Any]) -> Candidate:
    return Candidate(
        Prediction.model_validate(proposal["prediction"]),
        proposal["score"],
        str(proposal.get("strategy") or ""),
        float(proposal.get("precedent") or 0.0),
        proposal.get("makes_fit") is True,
    )


def _replay(record: Record, conversation: Conversation) -> None:
    """What a record adds to a conversation."""
    payload, inquiry = record.fields, conversation.inquiry
    if record.kind is Kind.NOTE and payload.get("event") == EVIDENCE:
        inquiry.record([StatedFact.model_validate(payload["evidence"])])
    elif record.kind is Kind.NOTE and payload.get("event") == RETRACTION:
        gone = StatedFact.model_validate(payload["fact"])
        inquiry.retract([fact for fact in inquiry.facts if fact == gone])
    elif record.kind is Kind.RESULT and payload.get("node") == REPLY:
        found = map(parse, map(str, payload["output"].get("offered", ())))
        conversation.offered = tuple(one for one in found if one is not None)
        conversation.hinted = conversation.hinted or payload["output"].get("understood") is not None
