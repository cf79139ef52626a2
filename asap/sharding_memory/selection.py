"""Records of a session by who wrote them, of what kind they are, and whether something failed."""

import re
from collections.abc import Sequence

from asap.core.errors import NotFoundError, UsageError
from asap.core.text import plain
from asap.sharding_memory.record import Kind, Record

_NODE = re.compile(r"(?<![^/@])([^/@]+)@[^/]*$")


def selected(
    records: Sequence[Record], agent: str | None = None, kinds: Sequence[str] = (), *, failed: bool = False
) -> list[Record]:
    """The records that meet every condition.

    Args:
        records: of one session.
        agent: who wrote them: an agent, or a node of the workflow.
        kinds: any of them; empty: all kinds.
        failed: only errors, refused calls and failed answers of a model.

    Raises:
        NotFoundError: no record is of that agent.
        UsageError: there is no such kind.
    """
    if unknown := set(kinds) - set(Kind):
        raise UsageError("no such kind of record", where=plain(min(unknown), 40), hint=f"there are: {', '.join(Kind)}")
    authors = [author_of(record) for record in records]
    if agent is not None and agent not in authors:
        known = ", ".join(plain(name, 40) for name in dict.fromkeys(authors) if name) or "none"
        raise NotFoundError("no record is of that agent", where=plain(agent, 40), hint=f"there are: {known}")
    return [
        record
        for record, author in zip(records, authors, strict=True)
        if agent in {None, author} and (not kinds or record.kind in kinds) and (not failed or is_failure(record))
    ]


def author_of(record: Record) -> str:
    """The agent or the node that a record is of; empty where it is of neither."""
    fields = record.fields
    if agent := fields.get("agent"):
        return str(agent)
    node = str(fields.get("node") or "")
    found = _NODE.search(node)
    return found[1] if found else node


def is_failure(record: Record) -> bool:
    """Whether it reports an error, a refused call, or an answer of a model that failed."""
    result = record.fields.get("result")
    refused = record.kind is Kind.TOOL_RESULT and isinstance(result, dict) and "error" in result
    return record.kind is Kind.ERROR or refused or (record.kind is Kind.MODEL_RESPONSE and "error" in record.fields)
