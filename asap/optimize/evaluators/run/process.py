"""One command in a folder: started once, followed across kills of this process, and stopped with all it started.

The command writes to a file, not to us, and holds a lock as long as it lives; so another process finds out whether it
still runs, where its output is, and how it ended. Whoever starts it a second time finds it started.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

GRACE_S = 10.0  # seconds from SIGTERM to SIGKILL; judgement: what a try may still write
_WRAPPER = """
echo $$ > pid.tmp && mv pid.tmp pid
(
cd "$2" || exit 1
eval "$1"
)
code=$?
echo $code > exit.tmp && mv exit.tmp exit
"""


class Process:
    """A command in its own process group.

    Args:
        place: its folder: ``log``, ``pid``, ``exit``, ``lock``.
    """

    def __init__(self, place: Path):
        self.place = place
        self.log = place / "log"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, script: str, folder: Path) -> None:
        """Start the script with ``sh`` in a folder, unless it was started before."""
        lock = os.open(self.place / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.began is not None:
                return
            with self.log.open("ab") as log:
                self._child = subprocess.Popen(
                    ["sh", "-c", _WRAPPER, "sh", script, str(folder)], cwd=self.place,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=(lock,),
                )  # fmt: skip
        except BlockingIOError:
            return
        finally:
            os.close(lock)

    @property
    def began(self) -> float | None:
        """When it started, seconds since the epoch."""
        with contextlib.suppress(FileNotFoundError):
            return (self.place / "pid").stat().st_mtime
        return None

    @property
    def ended(self) -> float | None:
        """When it ended by itself."""
        with contextlib.suppress(FileNotFoundError):
            return (self.place / "exit").stat().st_mtime
        return None

    @property
    def code(self) -> int | None:
        """Its exit code; ``None`` while it runs, and where it was killed with all around it."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.place / "exit").read_text())
        return None

    @property
    def runs(self) -> bool:
        """Whether it still runs."""
        if self._child is not None:
            self._child.poll()
        return self.ended is None and self._is_locked()

    def stop(self, grace: float = GRACE_S) -> None:
        """End the whole group: politely, then not."""
        group = self._group()
        if group is None:
            return
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, grace)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
            if self._is_gone(group, patience):
                return

    def _group(self) -> int | None:
        """The process group, only while something of it is known to live: numbers are used again."""
        if self._child is not None:
            return self._child.pid
        if not self._is_locked():
            return None
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.place / "pid").read_text())
        return None

    def _is_gone(self, group: int, patience: float) -> bool:
        until = time.monotonic() + patience
        while True:
            if self._child is not None:
                self._child.poll()
            if not _lives(group):
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)

    def _is_locked(self) -> bool:
        try:
            lock = os.open(self.place / "lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(lock)


def _lives(group: int) -> bool:
    """Whether a process of the group runs; one that ended stays until its parent asks, in a container for good."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        states = [state for state, of in map(_state_and_group, Path("/proc").glob("[0-9]*/stat")) if of == group]
        return not states or any(state not in "ZX" for state in states)
    return False


def _state_and_group(stat: Path) -> tuple[str, int]:
    """Of a process, by proc(5): ``pid (name) state parent group …``."""
    with contextlib.suppress(OSError):
        state, _, group, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
        return state, int(group)
    return "X", 0
