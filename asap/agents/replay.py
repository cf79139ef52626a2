"""``replay``: a recorded session once more, offline, with the recorded answers of the model and the real tools.

The replay is a session of its own. Both are compared record by record; only names that must differ are made equal.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from asap.agents.compiled_note import compiled_by
from asap.agents.models import BUILTIN
from asap.agents.settings import Settings
from asap.agents.usage import EVENT as USAGE
from asap.compiler.choice import Choice
from asap.core.errors import BadInputError, NotFoundError
from asap.core.text import plain
from asap.experiments import Experiment, ExperimentStore
from asap.sharding_memory import Kind, Record, Worklog, new_session_name, read_session, verify_session

REPLAY = "replay"
RESULTS = {"analysis", "reply"}
LONGEST_VALUE = 160
ROUNDING = 1e-9
"""Relative: far above what the order of a sum changes, far below what anyone reads."""
NOT_SAID_AGAIN = ("/export", "/history", "/cost", "/model", "/quit", "/exit", "/q")
"""Commands that look at the session itself or at the machine."""

_CALL = re.compile(r"adk-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Parting:
    """The first record that is another one."""

    sequence: int | None
    step: str
    place: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        at = f"record {self.sequence}" if self.sequence is not None else "the end"
        return f"parted at {at} ({self.step}), {self.place}: recorded {self.recorded}, replayed {self.replayed}"


@dataclass(frozen=True)
class Replay:
    """A session and its replay: the result byte for byte, and the first record that differs by more than rounding."""

    session: str
    replayed_as: str
    steps: int
    same_result: bool
    parting: Parting | None

    @property
    def verdict(self) -> str:
        """What became of the result."""
        if self.same_result:
            return "the same, byte for byte"
        return "another" if self.parting else "the same but for the last digits of figures"


@dataclass(frozen=True)
class Turn:
    """What the engineer said, and all records up to what he said next."""

    text: str
    model: str
    records: tuple[Record, ...]

    @property
    def opened(self) -> Any:
        """The experiment that was opened, if this turn was an analysis."""
        notes = (r.payload for r in self.records if r.kind is Kind.NOTE and r.payload.get("event") == "opened")
        return next((note["experiment"] for note in notes), None)

    @property
    def compiled_by(self) -> Choice | None:
        """How plans were compiled, if it was an analysis that had them compiled."""
        return compiled_by(self.records)

    @property
    def is_said_again(self) -> bool:
        """Whether it can be replayed."""
        return self.text.split(" ")[0] not in NOT_SAID_AGAIN


def replay(session: str, store: ExperimentStore, progress: Callable[[str], None] = lambda stage: None) -> Replay:
    """Run a session again and compare.

    Raises:
        NotFoundError: there is no such session, or it holds no analysis.
        BadInputError: its records were altered, or cannot be read.
    """
    verdict = verify_session(session)
    if not verdict.ok:
        raise BadInputError(f"cannot be replayed: {verdict.reason}", where=session)
    turns = [turn for turn in _turns(read_session(session)) if turn.is_said_again]
    if not any(turn.opened for turn in turns):
        raise NotFoundError("holds no analysis to replay", where=session, hint="asap memory list shows others")
    again = new_session_name()
    _run(turns, session, again, store, progress)
    replayed = [turn for turn in _turns(read_session(again)) if turn.is_said_again]
    one, other = _steps(turns), _steps(replayed, {again: _recorded_as(turns, session)})
    results = [[text for record, text in steps if _is_result(record)] for steps in (one, other)]
    return Replay(session, again, len(one), results[0] == results[1], _parting(one, other))


def _run(
    turns: Sequence[Turn], session: str, again: str, store: ExperimentStore, progress: Callable[[str], None]
) -> None:
    from google.adk.models import LLMRegistry

    from asap.agents.run import analyze
    from asap.agents.tape import PREFIX, Recorded, Tape

    LLMRegistry.register(Recorded)
    name = f"{PREFIX}{session}"
    Recorded.tapes[name] = Tape(name, [record for turn in turns for record in turn.records])
    Worklog(again).append(Kind.NOTE, {"event": REPLAY, "of": session})
    try:
        for turn in turns:
            progress(plain(turn.text, 60))
            opened = turn.opened
            if opened is not None:
                record = Experiment.model_validate(opened)
                target = record.id if store.has(record.id) else turn.text.removeprefix("analyze ")
                analyze(
                    target, store=store, amend=lambda _, to=record: to, model=name, session=again,
                    compile_by=turn.compiled_by, progress=progress,
                )  # fmt: skip
            elif any(_is_result(record) for record in turn.records):
                _talk(turn, again, store, name)
    finally:
        del Recorded.tapes[name]


def _talk(turn: Turn, again: str, store: ExperimentStore, name: str) -> None:
    from asap.agents.chat import restore
    from asap.agents.chat.turns import Chat

    settings = Settings(model=BUILTIN if turn.model == BUILTIN else name)
    Chat(restore(again, store), settings).turn(turn.text, lambda piece: None)


def _turns(records: Sequence[Record]) -> Iterator[Turn]:
    starts = [n for n, r in enumerate(records) if r.kind is Kind.USER_INPUT and "model" in r.payload]
    for start, end in zip(starts, [*starts[1:], len(records)], strict=True):
        payload = records[start].payload
        yield Turn(payload["text"], payload["model"], tuple(records[start:end]))


def _steps(turns: Sequence[Turn], names: dict[str, str] | None = None) -> list[tuple[Record, str]]:
    """Each record as text in which what differs from run to run is made equal."""
    return [
        (record, _text(record, {**(names or {}), turn.model: "MODEL"}))
        for turn in turns
        for record in turn.records
        if not (record.kind is Kind.NOTE and record.payload.get("event") == USAGE)
    ]


def _text(record: Record, names: dict[str, str]) -> str:
    text = json.dumps({"kind": record.kind.value, "payload": record.payload}, sort_keys=True)
    for name, equal in names.items():
        text = text.replace(name, equal)
    return _CALL.sub("CALL", text)


def _recorded_as(turns: Sequence[Turn], session: str) -> str:
    """The name that a session had when it was recorded: its file may have been copied."""
    analyses = (r.payload["output"] for turn in turns for r in turn.records if _is_result(r))
    return next((output["session"] for output in analyses if "session" in output), session)


def _is_result(record: Record) -> bool:
    return record.kind is Kind.RESULT and record.payload.get("node") in RESULTS


def _parting(one: list[tuple[Record, str]], other: list[tuple[Record, str]]) -> Parting | None:
    for (record, text), (_, again) in zip(one, other, strict=False):
        if text != again and (difference := _first_difference(json.loads(text), json.loads(again), "")):
            place, was, now = difference
            return Parting(record.sequence, _name(record), place or "the whole record", _shown(was), _shown(now))
    if len(one) == len(other):
        return None
    longer = one if len(one) > len(other) else other
    record = longer[min(len(one), len(other))][0]
    recorded, replayed = (_name(record), "nothing") if longer is one else ("nothing", _name(record))
    return Parting(record.sequence if longer is one else None, _name(record), "the record", recorded, replayed)


def _first_difference(was: Any, now: Any, place: str) -> tuple[str, Any, Any] | None:
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(f"{place}.{key}".lstrip("."), was.get(key), now.get(key)) for key in dict.fromkeys((*was, *now))]
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = [(f"{place}[{n}]", a, b) for n, (a, b) in enumerate(zip(was, now, strict=True))]
    else:
        return None if _equal(was, now) else (place, was, now)
    found = (_first_difference(a, b, at) for at, a, b in pairs)
    return next((difference for difference in found if difference), None)


def _equal(was: Any, now: Any) -> bool:
    """Whether two values are one, figures up to the rounding in which processors differ."""
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=ROUNDING)
    return was == now


def _name(record: Record) -> str:
    payload = record.payload if isinstance(record.payload, dict) else {}
    who = payload.get("tool") or payload.get("agent") or payload.get("node") or payload.get("event") or ""
    return f"{record.kind.value} {plain(who, 60)}".strip()


def _shown(value: Any) -> str:
    return plain(json.dumps(value), LONGEST_VALUE)
