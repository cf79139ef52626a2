"""A recorded session, turn by turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asap.agents.workflow.compiled_note import recorded_compile_options
from asap.compiler.programs.options import CompileOptions
from asap.experiments import Experiment
from asap.sharding_memory import Kind, Record
from asap.sharding_memory.analyses import opened_experiment, opened_wishes
from asap.study.wishes import Wishes

RESULT_NODES = {"analysis", "reply"}
NOT_REPLAYED = ("/export", "/history", "/cost", "/model", "/quit", "/exit", "/q")
"""Commands that read the session itself or the machine."""


@dataclass(frozen=True)
class RecordedTurn:
    """One input of the engineer, with all records up to the next input."""

    text: str
    model: str
    records: tuple[Record, ...]

    @property
    def opened(self) -> Experiment | None:
        """The experiment that was opened, if this turn was an analysis."""
        found = opened_experiment(self.records)
        return None if found is None else Experiment.model_validate(found)

    @property
    def wishes(self) -> Wishes:
        """What was asked of the analysis beside the record."""
        return Wishes.from_record(opened_wishes(self.records))

    @property
    def compile_options(self) -> CompileOptions | None:
        """How the analysis compiled plans; ``None`` if it did not."""
        return recorded_compile_options(self.records)

    @property
    def is_replayable(self) -> bool:
        """Whether it is replayed."""
        return self.text.split(" ")[0] not in NOT_REPLAYED


def recorded_turns(records: Sequence[Record]) -> Iterator[RecordedTurn]:
    """The turns that can be replayed, in order."""
    starts = [n for n, r in enumerate(records) if r.kind is Kind.USER_INPUT and {"text", "model"} <= r.fields.keys()]
    for start, end in zip(starts, [*starts[1:], len(records)], strict=True):
        payload = records[start].fields
        turn = RecordedTurn(str(payload["text"]), str(payload["model"]), tuple(records[start:end]))
        if turn.is_replayable:
            yield turn


def recorded_name(turns: Sequence[RecordedTurn], session: str) -> str:
    """The name that a session had when it was recorded: its file may have been copied."""
    analyses = (r.fields["output"] for turn in turns for r in turn.records if is_result(r))
    return next((output["session"] for output in analyses if "session" in output), session)


def is_result(record: Record) -> bool:
    """Whether a record is the result of a turn."""
    return record.kind is Kind.RESULT and record.fields.get("node") in RESULT_NODES
