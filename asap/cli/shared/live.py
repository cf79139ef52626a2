"""The table of an optimization as it grows: redrawn on a terminal, a line for each try in a pipe."""

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asap.optimize.report import OptimizationReport
    from asap.optimize.stopping import Worth

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
    ) -> None:  # fmt: skip
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
                    self._console.print(line_of(each), soft_wrap=True)

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
