"""What a case may cost: 20 seconds and 2 GB. Whoever needs more has failed."""

import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 20.0
GIGABYTES = 2.0


class TooLongError(BaseException):
    """A case that took longer than it may. It derives from BaseException, so that no handler takes it for bad input."""


@contextmanager
def limits() -> Iterator[None]:
    """Interrupt what takes too long, and fail what took too much memory."""
    before, began = _peak(), time.monotonic()
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(int(SECONDS))
    try:
        yield
    finally:
        signal.alarm(0)
    if time.monotonic() - began > SECONDS:
        raise TooLongError(f"took {time.monotonic() - began:.0f} s")
    if _peak() - before > GIGABYTES * 1e9:
        raise MemoryError(f"took {(_peak() - before) / 1e9:.1f} GB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError(f"still running after {SECONDS:.0f} s")
