"""A record in one line: who did what."""

import json
from typing import Any

from asap.core.text import plain
from asap.sharding_memory.record import Kind, Record

LONGEST = 240


def described(record: Record, longest: int = LONGEST) -> str:
    """What a record says, without control characters, cut to so many characters."""
    return plain(_words(record.kind, record.payload), longest)


def _words(kind: Kind, payload: Any) -> str:
    if not isinstance(payload, dict):
        return json.dumps(payload, ensure_ascii=False)
    agent = f"{payload['agent']}: " if payload.get("agent") else ""
    if kind is Kind.USER_INPUT:
        return str(payload.get("text", ""))
    if kind is Kind.MODEL_REQUEST:
        return f"{agent}asks {payload.get('model', 'the model')}"
    if kind is Kind.MODEL_RESPONSE:
        parts = (payload.get("content") or {}).get("parts") or ()
        return agent + (", ".join(map(_part, parts)) or str(payload.get("error", "")))
    if kind is Kind.TOOL_CALL:
        return f"{agent}{payload.get('tool')}({_arguments(payload.get('arguments') or {})})"
    if kind is Kind.TOOL_RESULT:
        return f"{agent}{payload.get('tool')} answers {_short(payload.get('result'))}"
    return _short(payload)


def _part(part: Any) -> str:
    call = part.get("function_call")
    return f"calls {call.get('name')}" if call else str(part.get("text", ""))


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
