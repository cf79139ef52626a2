"""What a long piece of work says of itself, heard by whoever shows it, without each caller between handing it on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float | None], None]
"""Takes a stage, and the share of it that is done, where that is known."""
_LISTENER: ContextVar[Listener | None] = ContextVar("progress", default=None)


@contextmanager
def listening(show: Listener) -> Iterator[None]:
    """Call ``show`` with each stage that is reported inside."""
    token = _LISTENER.set(show)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(stage: str, done: float | None = None) -> None:
    """Say what is being done, and how much of it is; nothing happens where nobody listens."""
    if (show := _LISTENER.get()) is not None:
        show(stage, done)
