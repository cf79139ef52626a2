"""Where the agents' conversations are stored, so that a chat can continue in another process."""

import json
import sqlite3

from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import ToolContext
from google.genai import types
from pydantic import InstanceOf

from asap.core.files import home
from asap.sharding_memory.payload import plain_payload

USER = "engineer"
FILE = "conversations.sqlite"

AdkContext = InstanceOf[ToolContext]
"""What google-adk hands to a tool that has a parameter of this type; the model does not see it."""


def session_of(context: ToolContext) -> str:
    """The session of google-adk in which a tool is called."""
    return context.session.id


class RedactedSessions(SqliteSessionService):
    """Keeps no keys and passwords: what is stored is what the worklog would hold."""

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event without its secrets."""
        if event.content is not None:
            content = plain_payload(event.content.model_dump(mode="json", exclude_none=True))
            event.content = types.Content.model_validate_json(json.dumps(content))
        event.actions.state_delta = {key: plain_payload(item) for key, item in event.actions.state_delta.items()}
        return await super().append_event(session, event)


async def open_sessions(app: str, session: str) -> BaseSessionService:
    """The store that holds a session, old or new: a file of the user's folder, or memory if that cannot be written."""
    path = home() / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return await _holding(RedactedSessions(str(path)), app, session)
    except (OSError, sqlite3.Error):
        return await _holding(InMemorySessionService(), app, session)


async def _holding(service: BaseSessionService, app: str, session: str) -> BaseSessionService:
    if await service.get_session(app_name=app, user_id=USER, session_id=session) is None:
        await service.create_session(app_name=app, user_id=USER, session_id=session)
    return service
