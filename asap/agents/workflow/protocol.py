"""What the agents of an analysis hand to each other, and what is taken of an answer that is not quite one."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from asap.core.text import plain
from asap.diagnosis import Bottleneck
from asap.history.record import ChangeKind, Part

MOST_FAULTS = 30
"""Of the fields of one answer that are taken out one by one."""
LONGEST = 4000


def read_answer(text: str, schema: type[BaseModel], words: str) -> dict[str, Any]:
    """The object that a text holds, or the text as the field that takes words."""
    decoder = json.JSONDecoder()
    for at in (place for place, sign in enumerate(text[:LONGEST]) if sign == "{"):
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            inner = found.get("arguments", found.get("parameters", found))
            found = inner if isinstance(inner, dict) else found
            if set(found) & set(schema.model_fields):
                return found
    return {words: plain(text, LONGEST)}


def usable(arguments: dict[str, Any], schema: type[BaseModel]) -> tuple[BaseModel, list[str]]:
    """The part of some arguments that a schema takes, and what is wrong with the rest."""
    left = {name: value for name, value in arguments.items() if name in schema.model_fields}
    wrong: list[str] = []
    for _ in range(MOST_FAULTS):
        try:
            return schema.model_validate(left), wrong
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = first["loc"]
            wrong.append(plain(f"{'.'.join(map(str, place))}: {first['msg']}", 200))
            _drop(left, place)
    return schema(), wrong


def _drop(arguments: dict[str, Any], place: Sequence[int | str]) -> None:
    """Take out the item of a list, or the field, in which something is wrong."""
    value = arguments.get(str(place[0]))
    if len(place) > 1 and isinstance(value, list) and isinstance(place[1], int) and place[1] < len(value):
        arguments[str(place[0])] = [one for number, one in enumerate(value) if number != place[1]]
    else:
        arguments.pop(str(place[0]), None)


class AnalysisRequest(BaseModel):
    """What the coordinator hands to the workflow."""

    experiment: str = Field(description="ID of the experiment, exactly as the user wrote it")


class Assessment(BaseModel):
    """What the analyzer makes of the facts."""

    bottleneck: Bottleneck | None = Field(default=None, description="what the run waits for most")
    statement: str = Field(default="", description="why, in one or two sentences")
    evidence: list[str] = Field(default=[], description="the facts that say so, each with its reference in braces")
    missing: list[str] = Field(default=[], description="what is not known and would change the answer")


class Pick(BaseModel):
    """A plan that the proposal agent chose."""

    plan: str = Field(description="the plan, exactly as candidates writes it")
    reason: str = Field(default="", description="why this plan for this bottleneck, and what it costs")


class UntestedIdea(BaseModel):
    """Something that is not among the plans of the engine."""

    kind: ChangeKind = Field(description="what it changes")
    change: str = Field(description="the change in the words of the launcher, compiler or code")
    touches: Part = Field(default=Part.STEP, description="the part of the step that it touches")
    hypothesis: str = Field(default="", description="which part of the step it shortens, and why")
    refuted_by: str = Field(default="", description="the observation that would refute it")
    how: str = Field(default="", description="the cheapest way to try it")
    precedents: list[str] = Field(default=[], description="IDs of the records and notes that it rests on")


class Judgement(BaseModel):
    """The proposal agent's choice, best first."""

    picks: list[Pick] = Field(default=[], description="different plans, best first; what is left open the engine fills")
    recommendation: str = Field(default="", description="which to run first and why, or why to keep what runs now")
    ideas: list[UntestedIdea] = Field(default=[], description="at most three; none is a good answer")


class Objection(BaseModel):
    """What speaks against one choice."""

    plan: str = Field(description="the plan that it is about, as it is written")
    objection: str = Field(description="what could make it fail, and the observation that would show it")


class Critique(BaseModel):
    """What the critic found."""

    objections: list[Objection] = Field(default=[], description="the strongest for each choice; may be empty")
    summary: str = Field(default="", description="what speaks against the whole choice, in a sentence; may be empty")


SCHEMAS: dict[str, tuple[type[BaseModel], str]] = {
    "analyzer": (Assessment, "statement"), "proposal": (Judgement, "recommendation"), "critic": (Critique, "summary"),
}  # fmt: skip
"""What each agent answers, in their order, and the field that takes plain text."""
