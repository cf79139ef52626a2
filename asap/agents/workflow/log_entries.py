"""The entries of the worklog."""

import json
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


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
