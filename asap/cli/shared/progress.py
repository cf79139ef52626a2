"""What is being done, on standard error: drawn on a terminal, said with its time if verbose, else nothing."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asap.cli.shared.output import Verbosity, verbosity
from asap.core.progress import listening

if TYPE_CHECKING:
    from rich.console import RenderableType

DELAY_S = 1.0
"""Seconds after which a stage is drawn: what is done sooner is not worth a line."""


class Progress:
    """Called with each stage; this one says nothing."""

    def __call__(self, stage: str) -> None:
        """Another stage."""

    def stop(self) -> None:
        """Take the line off the screen for good: a result is about to be printed."""


class _Said(Progress):
    """Each stage on a line with its time."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, stage: str) -> None:
        from asap.core.text import plain

        print(f"asap: {time.monotonic() - self._start:5.1f} s  {plain(stage, 80)}", file=sys.stderr)


class _Drawn(Progress):
    """The current stage with the seconds that have passed."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._start, self._stage = time.monotonic(), "working"
        self._live = Live(
            console=Console(stderr=True, markup=False), refresh_per_second=4, transient=True, get_renderable=self._line
        )
        self._timer = threading.Timer(DELAY_S, self._live.start)
        self._timer.start()

    def __call__(self, stage: str) -> None:
        from asap.core.text import plain

        self._stage = plain(stage, 120)

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._live.stop()

    def _line(self) -> "RenderableType":
        from rich.spinner import Spinner
        from rich.text import Text

        return Spinner("dots", Text(f"{self._stage} … {time.monotonic() - self._start:.0f} s"))


@contextmanager
def progress() -> Iterator[Progress]:
    """Show the current stage once it takes longer than a second; nothing in a pipe or if it is to be quiet."""
    shown = _shown()
    try:
        with listening(shown):
            yield shown
    finally:
        shown.stop()


def _shown() -> Progress:
    if verbosity() is Verbosity.VERBOSE:
        return _Said()
    return _Drawn() if verbosity() is not Verbosity.QUIET and sys.stderr.isatty() else Progress()
