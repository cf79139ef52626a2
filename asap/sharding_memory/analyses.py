"""Analyses that sessions hold: the newest of an experiment, and all of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from asap.core.errors import BadInputError, NotFoundError
from asap.evidence.fact import StatedFact, recorded_facts
from asap.experiments import Experiment
from asap.reports.analysis import Analysis
from asap.sharding_memory.record import Kind, Record
from asap.sharding_memory.sessions import read_session, readable, readable_sessions


@dataclass(frozen=True)
class StoredAnalysis:
    """What a session analysed, as it was known then, and what came of it."""

    session: str
    time: datetime
    experiment: Experiment
    analysis: Analysis
    records: tuple[Record, ...] = field(repr=False)


def stored_analysis(session: str) -> StoredAnalysis:
    """The last analysis of a session.

    Raises:
        NotFoundError: there is no such session, or no analysis in it.
        BadInputError: what it holds cannot be read.
    """
    records = read_session(session)
    index = analysis_index(records)
    if index is None:
        raise NotFoundError("holds no analysis", where=session, hint="`asap sessions list` shows all sessions")
    try:
        experiment = Experiment.model_validate(opened_experiment(records[:index]))
        analysis = Analysis.model_validate(records[index].fields["output"])
    except (ValidationError, KeyError, TypeError) as error:
        raise BadInputError("its analysis cannot be read", where=session) from error
    return StoredAnalysis(session, records[index].time, experiment, analysis, records)


def stored_analyses() -> Iterator[StoredAnalysis]:
    """All that can be read, the oldest first; replays are left out."""
    for name, records in reversed(list(readable_sessions())):
        if analysis_index(records) is not None and not is_replay(records):
            with suppress(BadInputError, NotFoundError):
                yield stored_analysis(name)


def latest_session(experiment: str, path: str | None = None, said: Sequence[str] = ()) -> str | None:
    """The newest session that analysed an experiment to its end; of what is no record, that of its path.

    Args:
        experiment: its ID.
        path: of what is no record.
        said: what was stated of the run beside its record; whatever was, where this is empty.
    """
    for name, records in readable_sessions():
        known = analysis_index(records, experiment) is not None and _opened(records).get("path") == path
        if known and not is_replay(records) and (not said or stated_beside(records) == tuple(said)):
            return name
    return None


_OF_RUN = ("model", "workload", "hardware", "plan")
_OF_USER = ("typed", "piped", "session")
"""Where what a user puts on record comes from; what a tool of an agent was told holds for its session alone."""


def standing_facts(experiment: Experiment, path: str | None, said: Sequence[str] = ()) -> tuple[StatedFact, ...]:
    """What its user put on record in the latest session of a run, and did not take back; nothing where the run has
    changed since.

    Args:
        experiment: its record.
        path: of what is no record.
        said: what was stated of the run beside its record.
    """
    session = latest_session(experiment.id, path, said)
    records = read_session(session) if session else []
    with suppress(BadInputError), readable(session or ""):
        before = Experiment.model_validate(opened_experiment(records)) if records else None
        if before is not None and all(getattr(before, part) == getattr(experiment, part) for part in _OF_RUN):
            notes = (one.fields for one in records[opening_index(records) or 0 :] if one.kind is Kind.NOTE)
            return tuple(fact for fact in recorded_facts(notes) if fact.origin in _OF_USER)
    return ()


def analysis_index(records: Sequence[Record], experiment: str | None = None) -> int | None:
    """Where the last analysis stands, if it is of this experiment."""
    for index in range(len(records) - 1, -1, -1):
        payload = records[index].fields
        if records[index].kind is Kind.RESULT and payload.get("node") == "analysis":
            return index if experiment is None or _analysed(payload) == experiment else None
    return None


def _analysed(payload: Mapping[str, Any]) -> object:
    with suppress(KeyError, TypeError):
        return payload["output"]["experiment"]["id"]
    return None


def is_replay(records: Sequence[Record]) -> bool:
    """Whether a session repeats another."""
    return any(record.kind is Kind.NOTE and record.fields.get("event") == "replay" for record in records[:1])


def opened_experiment(records: Sequence[Record]) -> Any:
    """The record of the experiment as it was opened last, with what was stated beside it; ``None`` if none was."""
    return _opened(records).get("experiment")


def opened_preferences(records: Sequence[Record]) -> Mapping[str, Any]:
    """What was asked beside the record when the experiment was opened last."""
    return _opened(records).get("preferences", {})


def stated_beside(records: Sequence[Record]) -> tuple[str, ...]:
    """What was stated of the run beside its record when it was opened last, as it is typed."""
    return tuple(map(str, _opened(records).get("stated", ())))


def opening_index(records: Sequence[Record]) -> int | None:
    """Where an experiment was opened last."""
    notes = ((n, r) for n, r in enumerate(records) if r.kind is Kind.NOTE)
    return max((n for n, r in notes if r.fields.get("event") == "opened"), default=None)


def _opened(records: Sequence[Record]) -> Mapping[str, Any]:
    return {} if (at := opening_index(records)) is None else records[at].fields
