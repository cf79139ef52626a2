"""Writes Sharding Memory: the messages of users, models and tools, in order, to the worklog of the session.

An exception inside a plugin would end the run, so nothing here raises: a step that cannot be serialized is logged as
an error, and a worklog that cannot be written reports that itself.
"""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from asap.sharding_memory import Kind, Worklog


def request_entry(agent: str, request: LlmRequest, seen: int) -> dict[str, Any]:
    """A request to a model: the first one of an agent whole, later ones without what the log holds already."""
    entry: dict[str, Any] = {"agent": agent, "model": request.model}
    if not 0 < seen < len(request.contents):
        seen = 0
        entry |= {"instruction": request.config.system_instruction, "tools": sorted(request.tools_dict)}
    return entry | {"contents": [content_entry(content) for content in request.contents[seen:]]}


def response_entry(agent: str, response: LlmResponse) -> dict[str, Any]:
    """An answer of a model, with its usage and its finish reason where they are reported."""
    entry = {
        "agent": agent,
        "content": content_entry(response.content),
        "usage": response.usage_metadata and response.usage_metadata.model_dump(mode="json", exclude_none=True),
        "finish_reason": response.finish_reason,
        "error": response.error_code and f"{response.error_code}: {response.error_message}",
    }
    return {key: value for key, value in entry.items() if value is not None}


def error_entry(where: str, error: Exception) -> dict[str, Any]:
    """An error, and where it was seen."""
    return {"where": where, "type": type(error).__name__, "message": str(error)}


def content_entry(content: types.Content | None) -> Any:
    """A message as JSON."""
    return content and content.model_dump(mode="json", exclude_none=True)


def fingerprint(content: types.Content | None) -> str:
    """What a message says, without the IDs that google-adk gives to calls."""
    parts = (content.parts if content else None) or ()
    calls = ((part.function_call.name, part.function_call.args) if part.function_call else None for part in parts)
    texts = (part.text for part in parts)
    return json.dumps([*zip(texts, calls, strict=True)], sort_keys=True, default=str)


Context = InvocationContext | ReadonlyContext
Callback = TypeVar("Callback", bound=Callable[..., Coroutine[Any, Any, None]])


def _never_raises(callback: Callback) -> Callback:
    @wraps(callback)
    async def guarded(*args: Any, **kwargs: Any) -> None:
        with suppress(Exception):
            await callback(*args, **kwargs)

    return cast(Callback, guarded)


class MemoryPlugin(BasePlugin):
    """Writes each step of a run to the worklog of its session.

    Args:
        worklog: of the one session that is run; without it, every session gets the worklog of its name.
        logged_input: user input that is on record already.
    """

    def __init__(self, worklog: Worklog | None = None, logged_input: str | None = None):
        super().__init__(name="sharding_memory")
        self._logged_input = logged_input
        self._worklogs = {worklog.session: worklog} if worklog else {}
        self._requested: dict[tuple[str, str], int] = {}
        self._answered: dict[tuple[str, str], str] = {}

    @_never_raises
    async def on_user_message_callback(self, *, invocation_context: InvocationContext, user_message: types.Content):
        """User input."""
        text = "\n".join(part.text for part in user_message.parts or () if part.text)
        if text != self._logged_input:
            self._log(invocation_context, Kind.USER_INPUT, lambda: {"text": text})
        self._logged_input = None

    @_never_raises
    async def before_model_callback(self, *, callback_context: ReadonlyContext, llm_request: LlmRequest):
        """A request to a model: what is new in it since the agent's last one."""
        agent = callback_context.agent_name
        key = callback_context.invocation_id, agent
        seen = self._requested.get(key, 0)
        self._requested[key] = len(llm_request.contents)
        self._log(callback_context, Kind.MODEL_REQUEST, lambda: request_entry(agent, llm_request, seen))

    @_never_raises
    async def after_model_callback(self, *, callback_context: ReadonlyContext, llm_response: LlmResponse):
        """The answer of a model, once it is whole."""
        if llm_response.partial:
            return
        agent = callback_context.agent_name
        self._log(callback_context, Kind.MODEL_RESPONSE, lambda: response_entry(agent, llm_response))
        self._answered[callback_context.invocation_id, agent] = fingerprint(llm_response.content)

    @_never_raises
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event):
        """The output of an agent or a function, and answers that a callback made up in place of a model."""
        if event.partial:
            return
        if event.output is not None:
            self._log(invocation_context, Kind.RESULT, lambda: {"node": event.node_info.path, "output": event.output})
        elif self._is_made_up(event):
            entry = {"made_up": True}
            self._log(invocation_context, Kind.MODEL_RESPONSE, lambda: response_entry(event.author, event) | entry)

    @_never_raises
    async def before_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext):
        """A call of a tool."""
        self._log(tool_context, Kind.TOOL_CALL, lambda: _tool(tool, tool_context) | {"arguments": tool_args})

    @_never_raises
    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ):
        """What a tool answered."""
        self._log(tool_context, Kind.TOOL_RESULT, lambda: _tool(tool, tool_context) | {"result": result})

    @_never_raises
    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ):
        """A tool that raised."""
        self._log(tool_context, Kind.ERROR, lambda: error_entry(f"tool {tool.name}", error))

    @_never_raises
    async def on_model_error_callback(
        self, *, callback_context: ReadonlyContext, llm_request: LlmRequest, error: Exception
    ):
        """A model that failed."""
        self._log(callback_context, Kind.ERROR, lambda: error_entry(f"model {llm_request.model}", error))

    @_never_raises
    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """A run that ended with an error."""
        self._log(invocation_context, Kind.ERROR, lambda: error_entry("run", error))

    def _is_made_up(self, event: Event) -> bool:
        if event.content is None or event.content.role != "model":
            return False
        return self._answered.pop((event.invocation_id, event.author), None) != fingerprint(event.content)

    def _log(self, context: Context, kind: Kind, entry: Callable[[], Any]) -> None:
        session = context.session.id
        worklog = self._worklogs.get(session) or self._worklogs.setdefault(session, Worklog(session))
        try:
            worklog.append(kind, entry())
        except Exception as error:
            worklog.append(Kind.ERROR, error_entry(f"log of a {kind.value}", error))


def _tool(tool: BaseTool, context: ToolContext) -> dict[str, Any]:
    return {"agent": context.agent_name, "tool": tool.name, "call": context.function_call_id}
