"""What every run on google-adk needs: one kind of error, a quiet terminal, a question with its answer."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from inspect import isbuiltin

from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner
from google.genai import types

from asap.agents.workflow.sessions import USER
from asap.core.errors import AsapError, ServiceError
from asap.core.secrets import redacted
from asap.core.text import plain

LONGEST_REASON = 300
NO_LIMIT = 1_000_000
"""google-adk's own limit on calls is never reached: the meter enforces all limits."""

_NULL_HANDLER = logging.NullHandler()


@contextmanager
def as_service_error(model: str) -> Iterator[None]:
    """Turn any failure of a model into a ``ServiceError``; errors of ASAP pass, unwrapped from google-adk's."""
    try:
        yield
    except AsapError:
        raise
    except Exception as error:
        if isinstance(error.__cause__, AsapError):
            raise error.__cause__ from error
        reason = plain(redacted(f"{type(error).__name__}: {error}"), LONGEST_REASON)
        raise ServiceError(f"the model failed: {reason}", where=model) from error


@contextmanager
def running_adk() -> Iterator[None]:
    """Keep google-adk's log lines and its notices of experimental features off the terminal.

    At the end its caches are emptied: they hold the last 1,024 tools, and with them what those were asked about.
    """
    for name in ("google_adk", "google_genai", "LiteLLM"):
        logger = logging.getLogger(name)
        logger.addHandler(_NULL_HANDLER)
        logger.propagate = False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]")
        try:
            yield
        finally:
            _empty_caches()


def _empty_caches() -> None:
    modules = [
        module for name, module in sys.modules.items() if name.startswith(("google.adk.tools", "google.adk.utils"))
    ]
    for held in (held for module in modules for held in [*vars(module).values()]):
        if isbuiltin(clear := getattr(held, "cache_clear", None)):
            clear()


async def ask(runner: Runner, session: str, message: str) -> str:
    """The words of one answer, without thoughts.

    Raises:
        ServiceError: the model reports an error.
    """
    config, words = RunConfig(max_llm_calls=NO_LIMIT), ""
    events = runner.run_async(
        user_id=USER, session_id=session, new_message=types.UserContent(message), run_config=config
    )
    async with aclosing(events):
        async for event in events:
            if event.error_code:
                raise ServiceError(plain(f"{event.error_code} {event.error_message or ''}", LONGEST_REASON))
            parts = (event.content.parts if event.content else None) or ()
            words += "".join(part.text for part in parts if part.text and not part.thought)
    return words
