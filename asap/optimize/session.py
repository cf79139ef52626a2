"""The session of an optimization in Sharding Memory: a try is on disk before it starts and after it ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from asap.core.errors import BadInputError, UsageError
from asap.core.files import home, private_folder, unwritable
from asap.optimize.outcome import Cost, Outcome, Suggestion, Try
from asap.optimize.stopping import Stopped
from asap.sharding_memory import Kind, Worklog, read_session, readable
from asap.sharding_memory.worklog import session_path

OPENED, BEGUN, ENDED, STOPPED = "optimization", "try_begun", "try_ended", "optimization_stopped"


class Session:
    """Tries, kept as they happen.

    Use :meth:`start` or :meth:`resume`.

    Args:
        worklog: that it is written to.
        settings: what was asked for, as plain data.
        tries: so far.
        stopped: why it ended; ``None`` while it goes on.
    """

    def __init__(self, worklog: Worklog, settings: Mapping[str, Any], tries: list[Try], stopped: Stopped | None = None):
        self._worklog = worklog
        self.stopped = stopped
        self.settings = settings
        self.tries = tries

    @classmethod
    def start(cls, name: str, settings: Mapping[str, Any]) -> "Session":
        """Begin a new session."""
        session = cls(Worklog(name), settings, [])
        session._write({"event": OPENED, "settings": settings})
        return session

    @classmethod
    def resume(cls, name: str) -> "Session":
        """Open a session to go on with it.

        Raises:
            NotFoundError: there is no such session.
            BadInputError: it is of another kind, or cannot be read.
        """
        settings, tries, stopped = None, dict[int, Try](), None
        with readable(name):
            for record in read_session(name):
                fields, event = record.fields, record.fields.get("event")
                if event == OPENED:
                    settings = fields["settings"]
                elif event in (BEGUN, ENDED):
                    tries[fields["try"]["number"]], stopped = Try.model_validate(fields["try"]), None
                elif event == STOPPED:
                    stopped = Stopped.model_validate(fields["stopped"])
        if settings is None:
            raise BadInputError(
                "is not an optimization session", where=name, hint="`asap optimize EXPERIMENT` starts one"
            )
        return cls(Worklog(name), settings, [tries[number] for number in sorted(tries)], stopped)

    @property
    def name(self) -> str:
        """As ``asap sessions list`` shows it."""
        return self._worklog.session

    @property
    def worklog(self) -> Worklog:
        """Where everything is written down."""
        return self._worklog

    @property
    def unfinished(self) -> list[Try]:
        """Tries that were begun, and of which no outcome is on disk."""
        return [each for each in self.tries if each.outcome is None]

    def place(self, number: int) -> Path:
        """The folder of a try."""
        folder = session_path(self.name).with_suffix(".tries") / str(number)
        return private_folder(folder)

    def begin(self, suggestion: Suggestion) -> Try:
        """Write a try down before it starts.

        Raises:
            AsapError: it cannot be written, so nothing may be spent on it.
        """
        begun = Try(number=len(self.tries) + 1, **suggestion.model_dump())
        self._write({"event": BEGUN, "try": begun})
        self.tries.append(begun)
        return begun

    def end(self, number: int, outcome: Outcome, cost: Cost) -> Try:
        """Write down what came of a try; raises like :meth:`begin`."""
        done = self.tries[number - 1].model_copy(update={"outcome": outcome, "cost": cost})
        self._write({"event": ENDED, "try": done})
        self.tries[number - 1] = done
        return done

    def stop(self, stopped: Stopped) -> None:
        """Write down why it ended; raises like :meth:`begin`."""
        self._write({"event": STOPPED, "stopped": stopped})
        self.stopped = stopped

    def _write(self, payload: Mapping[str, Any]) -> None:
        if self._worklog.append(Kind.NOTE, payload) is None:
            assert self._worklog.failed is not None
            raise self._worklog.failed


def only_session(experiment: str) -> FileLock:
    """The lock on an experiment: two sessions would disturb each other's measurements.

    Raises:
        UsageError: another session has it.
    """
    place = home() / "sessions" / f"{experiment}.optimize.lock"
    lock = FileLock(place, timeout=0, mode=0o600)
    try:
        private_folder(place.parent)
        lock.acquire()
    except Timeout as error:
        reason = "another session is measuring this experiment"
        raise UsageError(reason, where=experiment, hint="wait for it, or stop it") from error
    except OSError as error:
        raise unwritable(place.parent, error) from error
    return lock
