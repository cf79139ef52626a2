"""Replays a recorded session offline: the model's answers as recorded, the tools for real.

The replay is a session of its own, compared with the recorded one record by record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asap.agents.settings import BUILTIN, Settings
from asap.core.errors import BadInputError, NotFoundError
from asap.core.text import plain
from asap.experiments import ExperimentStore
from asap.replay.comparison import Divergence, comparable_steps, first_divergence
from asap.replay.turns import RecordedTurn, is_result, recorded_name, recorded_turns
from asap.sharding_memory import INTERRUPTED, Kind, Worklog, new_session_name, read_session, readable, verify_session

REPLAY = "replay"
_ANEW = "`asap analyze EXPERIMENT` runs it anew"


@dataclass(frozen=True)
class Replay:
    """A session and its replay: the result byte for byte, and the first record that differs by more than rounding."""

    session: str
    replayed_as: str
    steps: int
    same_result: bool
    divergence: Divergence | None

    @property
    def verdict(self) -> str:
        """How the result compares."""
        if self.same_result:
            return "the same, byte for byte"
        return "different" if self.divergence else "the same up to rounding"


def replay(session: str, store: ExperimentStore, progress: Callable[[str], None] = lambda stage: None) -> Replay:
    """Run a session again and compare.

    Raises:
        NotFoundError: there is no such session, or it holds no analysis.
        BadInputError: its records were altered, or cannot be read.
    """
    verdict = verify_session(session)
    if not verdict.ok:
        raise BadInputError(f"cannot be replayed: {verdict.reason}", where=session, hint=_ANEW)
    with readable(session):
        turns = list(recorded_turns(read_session(session)))
        opened = [(turn.opened, turn.compile_options) for turn in turns if turn.opened]
        finished = any(is_result(record) for turn in turns for record in turn.records)
    if not opened:
        raise NotFoundError("holds no analysis to replay", where=session, hint="`asap sessions list` shows others")
    if not finished:
        reason = "cannot be replayed: its analysis was interrupted before the result"
        raise BadInputError(reason, where=session, hint=_ANEW)
    again = new_session_name()
    _run(turns, session, again, store, progress)
    replayed = list(recorded_turns(read_session(again)))
    with readable(session):
        name = recorded_name(turns, session)
    one, other = comparable_steps(turns), comparable_steps(replayed, {again: name})
    results = [[text for record, text in steps if is_result(record)] for steps in (one, other)]
    return Replay(session, again, len(one), results[0] == results[1], first_divergence(one, other))


def _run(
    turns: Sequence[RecordedTurn], session: str, again: str, store: ExperimentStore, progress: Callable[[str], None]
) -> None:
    from asap.agents.llm.planner import recorded_model
    from asap.agents.settings import read_settings
    from asap.agents.workflow.analyze import analyze

    log = Worklog(again)
    log.append(Kind.NOTE, {"event": REPLAY, "of": session})
    if log.failed is not None:
        raise log.failed
    with recorded_model(session, [record for turn in turns if turn.has_result for record in turn.records]) as name:
        for turn in turns:
            progress(plain(turn.text, 60))
            opened = turn.opened
            if not turn.has_result:
                for record in turn.kept:
                    log.append(record.kind, record.payload)
            elif opened is not None:
                target = opened.id if store.has(opened.id) else turn.text.removeprefix("analyze ")
                model = BUILTIN if turn.model == BUILTIN else name
                analyze(
                    target, store=store, amend=lambda _, to=opened: to, settings=read_settings(model=model),
                    session=again, compile_options=turn.compile_options, preferences=turn.preferences,
                    progress=progress, facts=turn.facts,
                )  # fmt: skip
                if turn.was_interrupted:
                    log.append(Kind.NOTE, {"event": INTERRUPTED})
            else:
                _replay_message(turn, again, store, name)


def _replay_message(turn: RecordedTurn, again: str, store: ExperimentStore, name: str) -> None:
    from asap.chat import restore
    from asap.chat.chat import Chat

    settings = Settings(model=BUILTIN if turn.model == BUILTIN else name)
    Chat(restore(again, store), settings, origin=turn.origin).turn(turn.text, lambda piece: None)
