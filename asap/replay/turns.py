"""A recorded session, turn by turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from asap.agents.llm.usage import EVENT as USAGE
from asap.agents.workflow.analyze import recorded_compile_options
from asap.chat.language import parse
from asap.compiler.programs.options import CompileOptions
from asap.evidence.fact import EVIDENCE, ORIGINS, RETRACTION, Origin, StatedFact, recorded_facts
from asap.experiments import Experiment
from asap.sharding_memory import INTERRUPTED, Kind, Record
from asap.sharding_memory.analyses import opened_experiment, opened_preferences
from asap.study.study import Preferences

KEPT_EVENTS = {EVIDENCE, RETRACTION}
RESULT_NODES = {"analysis", "reply"}
NOT_REPLAYED = ("export", "history", "cost", "model", "quit")
"""Commands that read the session itself or the machine."""


@dataclass(frozen=True)
class RecordedTurn:
    """One input of the engineer, with all records up to the next input."""

    text: str
    model: str
    origin: Origin
    records: tuple[Record, ...]

    @property
    def opened(self) -> Experiment | None:
        """The experiment that was opened, if this turn was an analysis."""
        found = opened_experiment(self.records)
        return None if found is None else Experiment.model_validate(found)

    @property
    def preferences(self) -> Preferences:
        """What was asked of the analysis beside the record."""
        return Preferences.from_record(opened_preferences(self.records))

    @property
    def compile_options(self) -> CompileOptions | None:
        """How the analysis compiled plans; ``None`` if it did not."""
        return recorded_compile_options(self.records)

    @property
    def facts(self) -> tuple[StatedFact, ...]:
        """What was on record when it began, if this turn was an analysis."""
        return tuple(recorded_facts(record.fields for record in self.records if record.kind is Kind.NOTE))

    @property
    def has_result(self) -> bool:
        """Whether it came to an end: what was stopped before has none, and is not run again."""
        return any(map(is_result, self.records))

    @property
    def was_interrupted(self) -> bool:
        """Whether a Ctrl-C stopped it."""
        return any(record.kind is Kind.NOTE and record.fields.get("event") == INTERRUPTED for record in self.records)

    @property
    def kept(self) -> tuple[Record, ...]:
        """What it leaves although it was stopped: the input, and the facts that were put on record or taken off it."""
        return tuple(r for r in self.records if r.kind is Kind.USER_INPUT or r.fields.get("event") in KEPT_EVENTS)

    @property
    def compared(self) -> tuple[Record, ...]:
        """What a replay has to give again; where a Ctrl-C struck is up to chance, so the way there is left out."""
        if not self.has_result:
            return self.kept
        if self.was_interrupted:
            return tuple(filter(is_result, self.records))
        return tuple(r for r in self.records if not (r.kind is Kind.NOTE and r.fields.get("event") == USAGE))

    @property
    def is_replayable(self) -> bool:
        """Whether it is replayed."""
        command = parse(self.text.removeprefix("/"))
        return command is None or command.name not in NOT_REPLAYED


def recorded_turns(records: Sequence[Record]) -> Iterator[RecordedTurn]:
    """The turns that can be replayed, in order."""
    starts = [n for n, r in enumerate(records) if r.kind is Kind.USER_INPUT and {"text", "model"} <= r.fields.keys()]
    for start, end in pairwise([*starts, len(records)]):
        payload = records[start].fields
        turn = RecordedTurn(str(payload["text"]), str(payload["model"]), _origin(payload), tuple(records[start:end]))
        if turn.is_replayable:
            yield turn


def _origin(payload: Mapping[str, Any]) -> Origin:
    """Where a line came from; that it was piped is said since 2026-11-28."""
    found: list[Origin] = [one for one in ORIGINS if one == payload.get("origin")]
    return found[0] if found else "typed"


def recorded_name(turns: Sequence[RecordedTurn], session: str) -> str:
    """The name that a session had when it was recorded: its file may have been copied."""
    analyses = (r.fields["output"] for turn in turns for r in turn.records if is_result(r))
    return next((output["session"] for output in analyses if "session" in output), session)


def is_result(record: Record) -> bool:
    """Whether a record is the result of a turn."""
    return record.kind is Kind.RESULT and record.fields.get("node") in RESULT_NODES
