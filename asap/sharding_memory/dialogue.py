"""A session as people read it: what was said, which tools were called, what they answered, what failed.

Markdown in which every text of a record is an indented block: nothing in it is markup, and it reads well unrendered.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from pydantic import ValidationError

from asap.core.text import markdown, plain
from asap.sharding_memory.record import Kind, Record
from asap.sharding_memory.selection import author_of, is_failure

LONGEST = 240


def described(record: Record, longest: int = LONGEST) -> str:
    """What a record says, without control characters, cut to so many characters."""
    return plain(_described_words(record.kind, record.payload), longest)


def _described_words(kind: Kind, payload: Any) -> str:
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


LONGEST_ANSWER = 300
"""Characters of a tool's answer that are shown."""
_TOLD_ELSEWHERE = {"set_model_response", "engine"}
"""Tools whose answers are the words of an agent or of the chat, which follow."""
_SILENT = {"opened", "usage", "evidence", "retraction"}
"""Notes that the words tell already, or that no reader asks for."""

Spoken = tuple[str, Record, list[str]]
"""Who, when, and the lines."""


def dialogue(records: Sequence[Record]) -> Iterator[str]:
    """The blocks of a session, in order: a heading for each change of the speaker, and what was said and done."""
    spoken = [one for record in records if (one := _spoken(record)) and one[2]]
    for author, turns in groupby(spoken, key=lambda one: one[0]):
        said = list(turns)
        yield f"## {said[0][1].time:%H:%M:%S} {markdown(author, 60)}"
        yield "\n".join(f"    {line}" for _, _, lines in said for line in map(plain, lines) if line)


def _spoken(record: Record) -> Spoken | None:
    fields = record.fields
    author = author_of(record) or "asap"
    if is_failure(record):
        return author, record, [f"! failed: {described(record, LONGEST_ANSWER)}"]
    match record.kind:
        case Kind.USER_INPUT:
            return "the engineer", record, str(fields.get("text", record.payload)).splitlines()
        case Kind.TOOL_CALL if fields.get("tool") not in _TOLD_ELSEWHERE:
            return author, record, [f"→ {described(record, LONGEST_ANSWER).partition(': ')[2]}"]
        case Kind.TOOL_RESULT if fields.get("tool") not in _TOLD_ELSEWHERE:
            return author, record, [f"← {described(record, LONGEST_ANSWER).partition(' answers ')[2]}"]
        case Kind.MODEL_RESPONSE:
            return author, record, _words(fields)
        case Kind.RESULT if author in {"reply", "analysis"}:
            return "asap", record, _result(fields)
        case Kind.NOTE if fields.get("event") not in _SILENT:
            return author, record, [described(record, LONGEST_ANSWER)]
    return None


def _words(fields: dict[str, Any]) -> list[str]:
    parts = (fields.get("content") or {}).get("parts") or ()
    return [line for part in parts if not part.get("thought") for line in str(part.get("text") or "").splitlines()]


def _result(fields: dict[str, Any]) -> list[str]:
    """The reply of a chat, or what an analysis came to."""
    from asap.plans import Plan

    output: dict[str, Any] = fields.get("output") or {}
    if "text" in output:
        return str(output["text"]).splitlines()
    try:
        plans = [f"{one['rank']}. {one['title']}: {Plan.model_validate(one['plan'])}" for one in output["proposals"]]
        return [output["diagnosis"]["statement"], *plans, output["recommendation"]["statement"]]
    except (LookupError, TypeError, ValidationError):
        return ["an analysis that cannot be read"]
