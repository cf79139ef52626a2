"""What is being done, on standard error: drawn on a terminal, by stages if verbose, else what takes long."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from asap.cli.shared.output import Verbosity, verbosity
from asap.core.progress import listening

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asap.optimize.report import OptimizationReport
    from asap.optimize.stopping import Worth


DELAY_S = 1.0
"""Seconds after which a stage is drawn: what is done sooner is not worth a line."""
LONG_S = 10.0
"""Seconds after which a pipe is told, once, that there is more to wait for."""
_BAR = 24
"""Cells of a bar."""


class Progress:
    """Called with each stage; this one says nothing."""

    def __call__(self, stage: str, done: float | None = None) -> None:
        """Another stage, or the share of one that is done."""

    def stop(self) -> None:
        """Take the line off the screen for good: a result is about to be printed."""


class _Said(Progress):
    """Each stage on a line with its time."""

    def __init__(self) -> None:
        self._start, self._stage = time.monotonic(), ""

    def __call__(self, stage: str, done: float | None = None) -> None:
        from asap.core.text import plain
        from asap.core.units import format_seconds

        if stage == self._stage:
            return
        self._stage = stage
        print(f"asap: {format_seconds(time.monotonic() - self._start):>8}  {plain(stage, 80)}", file=sys.stderr)


class _SaidOnce(Progress):
    """One line for what takes long."""

    def __init__(self) -> None:
        self._stage = "working"
        self._timer = threading.Timer(LONG_S, self._say)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, stage: str, done: float | None = None) -> None:
        self._stage = stage

    def stop(self) -> None:
        self._timer.cancel()

    def _say(self) -> None:
        from asap.core.text import plain

        print(f"asap: {plain(self._stage, 80)} … (--verbose shows each stage)", file=sys.stderr)


class _Drawn(Progress):
    """The current stage with the seconds that have passed."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._start, self._stage = time.monotonic(), "working"
        self._done: float | None = None
        self._live = Live(
            console=Console(stderr=True, markup=False), refresh_per_second=4, transient=True, get_renderable=self._line
        )
        self._timer = threading.Timer(DELAY_S, self._live.start)
        self._timer.start()

    def __call__(self, stage: str, done: float | None = None) -> None:
        from asap.core.text import plain

        self._stage, self._done = plain(stage, 120), done

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._live.stop()

    def _line(self) -> "RenderableType":
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        from asap.core.units import format_percent

        stage = Spinner("dots", Text(f"{self._stage} … {round(time.monotonic() - self._start)} s"))
        if self._done is None:
            return stage
        line = Table.grid(padding=(0, 1))
        line.add_row(stage, ProgressBar(total=1.0, completed=self._done, width=_BAR), format_percent(self._done, 0))
        return line


@contextmanager
def progress() -> Iterator[Progress]:
    """Show the current stage once it takes longer than a second, in a pipe once; nothing if it is to be quiet."""
    shown = _shown()
    try:
        with listening(shown):
            yield shown
    finally:
        shown.stop()


def _shown() -> Progress:
    if verbosity() is Verbosity.VERBOSE:
        return _Said()
    if verbosity() is Verbosity.QUIET:
        return Progress()
    return _Drawn() if sys.stderr.isatty() else _SaidOnce()


_REFRESHES = 4


class LiveTable:
    """Shows reports on a stream while a session goes on.

    Args:
        stream: standard error, so that a result in JSON stays alone on standard output.
        session: its name, said at once: it is what a kill leaves.
    """

    def __init__(self, stream: TextIO, session: str):
        from rich.console import Console
        from rich.live import Live

        from asap.cli.shared.output import Verbosity, verbosity

        self._console = Console(file=stream, highlight=False, emoji=False, markup=False)
        self._quiet = verbosity() is Verbosity.QUIET
        self._session = session
        self._report: OptimizationReport | None = None
        self._note, self._doing, self._said = "", "", 0
        self._since = time.monotonic()
        self._lock = threading.Lock()
        drawn = self._console.is_terminal and not self._quiet
        self._live = (
            Live(console=self._console, refresh_per_second=_REFRESHES, get_renderable=self._drawn, transient=True)
            if drawn
            else None
        )

    def __enter__(self) -> "LiveTable":
        if self._live is not None:
            self._live.start()
        elif not self._quiet:
            self._console.print(f"session {self._session}", soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, report: "OptimizationReport", worth: "Worth | None") -> None:
        """Another state of the session."""
        from asap.optimize.table import line_of, worth_in_words

        with self._lock:
            self._report, self._doing, self._since = report, "", time.monotonic()
            self._note = worth_in_words(worth) if worth else ""
        if self._live is None and not self._quiet:
            for each in report.tries[self._said :]:
                if each.outcome is not None:
                    self._said += 1
                    self._console.print(line_of(each, report.tries[: self._said]), soft_wrap=True)

    def report(self, line: str) -> None:
        """What the running try is doing."""
        self._doing = line

    def _drawn(self) -> "RenderableType":
        from asap.core.units import format_seconds
        from asap.optimize.table import rendered

        with self._lock:
            if self._report is None:
                return f"session {self._session}"
            if all(each.outcome is not None for each in self._report.tries):
                return rendered(self._report)
            passed = format_seconds(max(round(time.monotonic() - self._since), 1))
            note = "; ".join(filter(None, (f"running for {passed}", self._doing, self._note)))
            return rendered(self._report, note)
