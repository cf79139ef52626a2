"""The one list of queries: tools of language models and of MCP, commands of the chat, JSON documents."""

from collections.abc import Mapping

from pydantic import ValidationError

from asap.answers.explain_query import Explain
from asap.answers.fact_queries import Facts, Record, Retract
from asap.answers.figure import Answer, Query
from asap.answers.inquiry import Inquiry
from asap.answers.library_queries import Define, Ideas, Notes, Precedents
from asap.answers.memory_query import Memory
from asap.answers.plan_queries import Candidates, Compare, Line, Predict
from asap.answers.profile_queries import OperationQuery, Operations, RooflineQuery, Trace
from asap.answers.run_queries import Bottleneck, Capture, Flags, Health, Run
from asap.answers.scenario_queries import Solve, Sweep, WhatIf
from asap.answers.test_queries import NextTest, Plausible, Settings, Verify, Worth
from asap.core.errors import NotFoundError, UsageError
from asap.core.text import plain

QUERIES: dict[str, type[Query]] = {
    "run": Run,
    "health": Health,
    "bottleneck": Bottleneck,
    "operations": Operations,
    "operation": OperationQuery,
    "roofline": RooflineQuery,
    "memory": Memory,
    "predict": Predict,
    "compare": Compare,
    "candidates": Candidates,
    "explain": Explain,
    "line": Line,
    "what_if": WhatIf,
    "sweep": Sweep,
    "solve": Solve,
    "settings": Settings,
    "flags": Flags,
    "worth": Worth,
    "verify": Verify,
    "next_test": NextTest,
    "capture": Capture,
    "plausible": Plausible,
    "precedents": Precedents,
    "ideas": Ideas,
    "notes": Notes,
    "define": Define,
    "trace": Trace,
    "record": Record,
    "retract": Retract,
    "facts": Facts,
}
"""Each query by its name."""


def query(name: str, arguments: Mapping[str, object]) -> Query:
    """A query by name with its arguments.

    Raises:
        NotFoundError: there is none of that name.
        UsageError: an argument is missing, unknown or of the wrong kind, in one line.
    """
    if name not in QUERIES:
        raise NotFoundError("no such query", where=plain(name, 40), hint=f"one of {', '.join(QUERIES)}")
    try:
        return QUERIES[name].model_validate(dict(arguments))
    except ValidationError as error:
        raise UsageError(complaint(error), where=name, hint=f"it takes {signature(name)}") from None


def ask(inquiry: Inquiry, name: str, /, **arguments: object) -> Answer:
    """The answer to a query; raises like :func:`query` and :meth:`asap.answers.figure.Query.answer`."""
    return query(name, arguments).answer(inquiry)


def signature(name: str) -> str:
    """What a query takes: ``plan, limit=10``."""
    fields = QUERIES[name].model_fields.items()
    return ", ".join(field if info.is_required() else f"{field}=…" for field, info in fields) or "nothing"


def complaint(error: ValidationError) -> str:
    """The first thing that is wrong with some arguments, in plain words."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
    reason = first["msg"].removeprefix("Value error, ")
    words = {"missing": "is missing", "extra_forbidden": "is no argument of it"}.get(first["type"], reason.lower())
    return plain(f"{place}: {words}" if place else words, 300)
