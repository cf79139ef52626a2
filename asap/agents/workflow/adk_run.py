"""Runs on google-adk: where conversations are stored, one kind of error, a quiet terminal, a question, an analysis."""

import asyncio
import json
import logging
import sqlite3
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from inspect import isbuiltin
from pathlib import Path

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import ToolContext
from google.genai import types
from pydantic import InstanceOf, ValidationError

from asap.agents.grounding.plugin import spoken
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.roles import ANSWER
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import Settings
from asap.agents.workflow.app import Analysis, build_analysis
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.protocol import AnalysisRequest
from asap.answers.inquiries import Inquiries
from asap.core.errors import AsapError, InterruptedRunError, ServiceError, UsageError
from asap.core.files import home, private_file
from asap.core.secrets import redacted
from asap.core.stores import REPAIR, warn_of_store
from asap.core.text import plain
from asap.proposals import ProposalSet
from asap.sharding_memory import INTERRUPTED, Kind, Worklog
from asap.sharding_memory.payload import plain_payload

USER = "engineer"
FILE = "conversations.sqlite"

Progress = Callable[[str], None]
AdkContext = InstanceOf[ToolContext]
"""What google-adk hands to a tool that has a parameter of this type; the model does not see it."""


def session_of(context: ToolContext) -> str:
    """The session of google-adk in which a tool is called."""
    return context.session.id


class RedactedSessions(SqliteSessionService):
    """Keeps no keys and passwords: what is stored is what the worklog would hold.

    A run goes on without its file: once that fails, what follows is kept in memory, and a warning says so.
    """

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path
        self._in_memory: dict[str, Session] = {}

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session, from the file or from memory."""
        if session_id in self._in_memory:
            return self._in_memory[session_id]
        return await super().get_session(app_name=app_name, user_id=user_id, session_id=session_id, config=config)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event without its secrets."""
        if event.content is not None:
            content = plain_payload(event.content.model_dump(mode="json", exclude_none=True))
            event.content = types.Content.model_validate_json(json.dumps(content))
        event.actions.state_delta = {key: plain_payload(item) for key, item in event.actions.state_delta.items()}
        if session.id not in self._in_memory:
            try:
                return await super().append_event(session, event)
            except (OSError, sqlite3.Error, ValueError, RuntimeError) as error:
                _warn(self._path, error)
                self._in_memory[session.id] = session
        return await BaseSessionService.append_event(self, session, event)


async def open_sessions(app: str, session: str) -> BaseSessionService:
    """The store that holds a session, old or new: a file of the user's folder, or memory if that cannot be written."""
    path = home() / FILE
    try:
        return await _holding(RedactedSessions(private_file(path)), app, session)
    except (OSError, sqlite3.Error, ValueError, RuntimeError) as error:  # the last: an old or a foreign schema
        _warn(path, error)
        return await _holding(InMemorySessionService(), app, session)


async def _holding(service: BaseSessionService, app: str, session: str) -> BaseSessionService:
    if await service.get_session(app_name=app, user_id=USER, session_id=session) is None:
        await service.create_session(app_name=app, user_id=USER, session_id=session)
    return service


def _warn(path: Path, error: Exception) -> None:
    warn_of_store(f"{path}: the conversation is not kept for another process ({error}; {REPAIR})")


LONGEST_REASON = 300
NO_LIMIT = 1_000_000
"""google-adk's own limit on calls is never reached: the meter enforces all limits."""

_NULL_HANDLER = logging.NullHandler()


@contextmanager
def metered(model: str, worklog: Worklog, meter: UsageMeter) -> Iterator[None]:
    """Log what a model used; its failures are a ``ServiceError``, errors of ASAP pass, unwrapped from google-adk's."""
    try:
        yield
    except AsapError:
        raise
    except Exception as error:
        if isinstance(error.__cause__, AsapError):
            raise error.__cause__ from error
        reason = plain(redacted(f"{type(error).__name__}: {error}"), LONGEST_REASON)
        raise ServiceError(f"the model failed: {reason}", where=model) from error
    finally:
        worklog.append(Kind.NOTE, usage_entry(meter.usage))


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


@asynccontextmanager
async def conversation(app: App, session: str) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """A conversation that is kept in memory: what an app's agent answers to each message."""
    sessions = InMemorySessionService()
    await sessions.create_session(app_name=app.name, user_id=USER, session_id=session)
    runner = Runner(app=app, session_service=sessions)
    try:
        yield partial(ask, runner, session)
    finally:
        with suppress(Exception):
            await runner.close()


async def events_of(
    runner: Runner, session: str, message: str, progress: Progress = lambda stage: None, *, streamed: bool = False
) -> AsyncGenerator[Event]:
    """The events of one message; which tools an agent calls is reported."""
    mode = {"streaming_mode": "sse"} if streamed else {}
    config = RunConfig.model_validate({"max_llm_calls": NO_LIMIT, **mode})
    content = types.UserContent(message)
    found = runner.run_async(user_id=USER, session_id=session, new_message=content, run_config=config)
    async with aclosing(found):
        async for event in found:
            for call in event.get_function_calls() if not event.partial else ():
                asked = plain((call.args or {}).get("command", call.name), 60)
                progress(f"{event.author}: {'answers' if call.name == ANSWER else asked}")
            yield event


def error_of(event: Event) -> ServiceError | None:
    """What a model reports in the place of an answer."""
    said = f"{event.error_code} {event.error_message or ''}"
    return ServiceError(plain(said, LONGEST_REASON)) if event.error_code else None


async def ask(runner: Runner, session: str, message: str) -> str:
    """The words of one answer, without thoughts.

    Raises:
        ServiceError: the model reports an error.
    """
    words = ""
    async with aclosing(events_of(runner, session, message)) as events:
        async for event in events:
            if failed := error_of(event):
                raise failed
            words += spoken(event.content)
    return words


def run_agents(
    studies: Inquiries, experiment: str, settings: Settings, worklog: Worklog, progress: Progress
) -> tuple[ProposalSet, ServiceError | None]:
    """Have the agents analyse an experiment; its usage of the model is always logged.

    Returns:
        The proposals, and the failure that ended the run early: then they hold what the agents had finished.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
    """
    meter = UsageMeter(settings.model, settings)
    with running_adk():
        request = AnalysisRequest(experiment=experiment).model_dump_json()
        built = build_analysis(studies, settings, MemoryPlugin(worklog, logged_input=request), meter)
        built.nodes.start(experiment)
        try:
            try:
                return asyncio.run(_run(built, worklog.session, request, meter.telling(progress))), None
            finally:
                worklog.append(Kind.NOTE, usage_entry(meter.usage))
        except UsageError:
            raise
        except KeyboardInterrupt:
            worklog.append(Kind.NOTE, {"event": INTERRUPTED})
            progress("interrupted: what there is")
            hint = f"`asap sessions show {worklog.session}`"
            return built.nodes.proposals(), InterruptedRunError(INTERRUPTED, where=settings.model, hint=hint)
        except (AsapError, ValidationError) as error:
            hint = (isinstance(error, ServiceError) and error.hint) or f"`asap sessions show {worklog.session}`"
            failure = ServiceError(_reason(error), where=settings.model, hint=hint)
            worklog.append(Kind.ERROR, {"where": "analysis", "type": type(error).__name__, "message": str(failure)})
            return built.nodes.proposals(), failure


async def _run(built: Analysis, session: str, request: str, progress: Progress) -> ProposalSet:
    runner = Runner(app=built.app, session_service=await open_sessions(built.app.name, session))
    failed = None
    try:
        async with aclosing(events_of(runner, session, request, progress, streamed=True)) as events:
            async for event in events:
                failed = error_of(event) or failed
    finally:
        await runner.close()
    if built.nodes.finished is None:
        said = failed.message if failed else "nothing"
        raise ServiceError(f"the model returned no proposals: {said}", where=session)
    return built.nodes.finished


def _reason(error: AsapError | ValidationError) -> str:
    if isinstance(error, ServiceError):
        return error.message
    return plain(redacted(f"the model's answer cannot be used: {error}"), LONGEST_REASON)
