"""One way for every answer of an agent: text or tool call, whole or in part, checked once and never thrown away.

A model that answers in text where a tool is asked for has its text read as that call; one that looks things up without
end is asked for its answer; what a check doubts goes back once, and then what is right of it counts.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.genai import types
from pydantic import BaseModel, Field, ValidationError

from asap.agents.grounding.plugin import spoken
from asap.agents.llm.planner import ANSWER
from asap.core.text import plain
from asap.diagnosis import Bottleneck
from asap.history.record import ChangeKind, Part

LOOKUPS = {"proposal": 2}
"""Calls of a model in which an agent may look things up before it is asked for its answer; of the others one."""
MOST_FAULTS = 30
"""Of the fields of one answer that are taken out one by one."""
CORRECTIONS = 1
LONGEST = 4000

Check = Callable[[Any], list[str]]
"""What is wrong with an answer, each complaint one line; empty if nothing is."""


class ProtocolPlugin(BasePlugin):
    """Reads, checks and repairs the answers of the agents of an analysis.

    Args:
        schemas: what each agent answers, and the field that takes plain text.
        checks: of the answer of each agent.
    """

    def __init__(self, schemas: dict[str, tuple[type[BaseModel], str]], checks: dict[str, Check]):
        super().__init__(name="protocol")
        self._schemas, self._checks = schemas, checks
        self._calls: dict[tuple[str, str], int] = defaultdict(int)
        self._refused: dict[tuple[str, str], int] = defaultdict(int)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """After a few look-ups only the answer is left to give."""
        key = callback_context.invocation_id, callback_context.agent_name
        if callback_context.agent_name not in self._schemas:
            return
        self._calls[key] += 1
        if self._calls[key] > LOOKUPS.get(callback_context.agent_name, 1) and ANSWER in llm_request.tools_dict:
            llm_request.tools_dict = {ANSWER: llm_request.tools_dict[ANSWER]}
            for tool in llm_request.config.tools or ():
                if isinstance(tool, types.Tool):
                    tool.function_declarations = [one for one in tool.function_declarations or () if one.name == ANSWER]
            mode = types.FunctionCallingConfigMode.ANY
            calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=[ANSWER])
            llm_request.config.tool_config = types.ToolConfig(function_calling_config=calling)

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Text in the place of an answer is read as the answer."""
        schema = self._schemas.get(callback_context.agent_name)
        content = llm_response.content
        if schema is None or llm_response.partial or content is None:
            return None
        text = spoken(content).strip()
        if not text or any(part.function_call for part in content.parts or ()):
            return None
        call = types.FunctionCall(name=ANSWER, args=read_answer(text, *schema))
        given = types.Content(role="model", parts=[types.Part(function_call=call)])
        return llm_response.model_copy(update={"content": given})

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Complaints go back, once; then what can be used of the answer is taken."""
        agent = tool_context.agent_name
        if tool.name != ANSWER or agent not in self._schemas:
            return None
        answer, wrong = usable(tool_args, self._schemas[agent][0])
        wrong += self._checks[agent](answer) if agent in self._checks else []
        key = tool_context.invocation_id, agent
        if wrong and self._refused[key] < CORRECTIONS:
            self._refused[key] += 1
            return {"complaint": "correct only what is named, and answer again", "corrections": wrong}
        tool_args.clear()
        tool_args.update(answer.model_dump(mode="json"))
        return None


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
