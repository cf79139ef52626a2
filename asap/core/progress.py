"""What a long piece of work says of itself, heard by whoever shows it, without each caller between handing it on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LISTENER: ContextVar[Callable[[str], None] | None] = ContextVar("progress", default=None)


@contextmanager
def listening(show: Callable[[str], None]) -> Iterator[None]:
    """Call ``show`` with each stage that is reported inside."""
    token = _LISTENER.set(show)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(stage: str) -> None:
    """Say what is being done; nothing happens where nobody listens."""
    if (show := _LISTENER.get()) is not None:
        show(stage)
