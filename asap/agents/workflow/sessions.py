"""Where the agents' conversations are stored, so that a chat can continue in another process."""

import json
import sqlite3
from pathlib import Path

from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import ToolContext
from google.genai import types
from pydantic import InstanceOf

from asap.core.files import home, private_file
from asap.core.stores import REPAIR, warn_of_store
from asap.sharding_memory.payload import plain_payload

USER = "engineer"
FILE = "conversations.sqlite"

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
