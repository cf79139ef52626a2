"""Models that need no service: ``builtin/planner``, role by role, and the answers on record of a session."""

import json
import re
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from google.adk.models import BaseLlm, LlmCapabilities, LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.settings import BUILTIN
from asap.agents.tools.toolbox import Answer
from asap.core.errors import ServiceError
from asap.diagnosis import Bottleneck
from asap.reports.answers.compact import unrolled
from asap.sharding_memory import INTERRUPTED, Kind, Record, readable


@dataclass(frozen=True)
class AgentTurn:
    """The last thing that was asked, and the answers of tools to it by name, the latest of each.

    Args:
        asked: in the words of who asks.
        answers: of tools since.
        offered: names of the tools that may be called.
        experiment: the one that a tool was called for last, in this turn or before.
    """

    asked: str
    answers: dict[str, Answer] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()
    experiment: str | None = None

    @classmethod
    def of(cls, contents: Sequence[types.Content], offered: Iterable[str] = ()) -> "AgentTurn":
        """Read a conversation from its last question on."""
        asked, answers, experiment = "", {}, None
        for content in contents:
            for part in content.parts or ():
                if part.function_call:
                    experiment = (part.function_call.args or {}).get("experiment", experiment)
                if part.text and content.role == "user":
                    asked, answers = part.text, {}
                elif part.function_response and part.function_response.name:
                    answers[part.function_response.name] = dict(part.function_response.response or {})
        return cls(asked, answers, frozenset(offered), experiment)

    @property
    def request(self) -> Answer:
        """The question as JSON, as one agent hands it to another; empty if it is not."""
        try:
            request = json.loads(self.asked)
        except ValueError:
            return {}
        return request if isinstance(request, dict) else {}


ANSWER = "set_model_response"
WORKFLOW = "analyze_experiment"
DISCUSS = "discuss"
USAGE = "I analyse training runs. Say: analyze EXPERIMENT. `asap experiments list` shows what there is."

_REQUEST = re.compile(r"/?analy[sz]e\s+[\"'`]?([A-Za-z0-9][A-Za-z0-9._-]*)", re.IGNORECASE)


@dataclass(frozen=True)
class ToolCall:
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


Action = tuple[ToolCall, ...] | str


def coordinate(turn: AgentTurn) -> Action:
    """Have the experiment analysed, report the result."""
    request = _REQUEST.search(turn.asked)
    if request is None:
        return _discuss(turn)
    arguments = {"experiment": request.group(1)}
    for tool in ("run", WORKFLOW):
        if tool not in turn.answers:
            return (ToolCall(tool, arguments),)
        if "error" in turn.answers[tool]:
            return _refusal(turn.answers[tool])
    return engine_summary(turn.answers[WORKFLOW])


def _discuss(turn: AgentTurn) -> Action:
    """Pass a message on to the chat over the last analysis, where there are both."""
    if DISCUSS not in turn.offered or turn.experiment is None:
        return USAGE
    if DISCUSS not in turn.answers:
        return (ToolCall(DISCUSS, {"experiment": turn.experiment, "message": turn.asked}),)
    answer = turn.answers[DISCUSS]
    return _refusal(answer) if "error" in answer else "\n".join(map(str, answer.get("lines", ())))


def engine_summary(result: Mapping[str, Any]) -> str:
    """The result of the workflow in the engine's own words."""
    lines = [f"{p['rank']}. {p['title']}: {p['plan']}" for p in result.get("proposals", ())]
    return "\n".join([*lines, str(result.get("recommendation", ""))])


def analyse(turn: AgentTurn) -> Action:
    """Report the findings among the facts."""
    found = unrolled(turn.request.get("facts", {}).get("bottleneck", {}))
    answer = {
        "bottleneck": _measured(found),
        "statement": found.get("statement") or _refusal(found),
        "evidence": [finding["finding"] for finding in found.get("findings", ())],
        "missing": list(found.get("missing", ())),
    }
    return (ToolCall(ANSWER, answer),)


def _measured(found: Mapping[str, Any]) -> str:
    """The bottleneck that was measured; the model's word is not evidence."""
    if found.get("basis") != "measured":
        return Bottleneck.INSUFFICIENT_EVIDENCE.value
    return str(found["bottleneck"]).replace(" ", "_")


def choose(turn: AgentTurn) -> Action:
    """Take the engine's choice among the facts; it proposes its untested ideas itself."""
    listed = unrolled(turn.request.get("facts", {}).get("candidates", {}))
    strategies = {candidate["plan"]: candidate.get("strategy") for candidate in listed.get("candidates", ())}
    picks = [{"plan": plan, "reason": strategies.get(plan) or plan} for plan in listed.get("proposals", ())]
    return (ToolCall(ANSWER, {"picks": picks}),)


def criticise(turn: AgentTurn) -> Action:
    """Leave the doubt to the engine's intervals."""
    return (ToolCall(ANSWER, {}),)


ROLES: dict[str, Callable[[AgentTurn], Action]] = {
    "coordinator": coordinate, "analyzer": analyse, "proposal": choose, "critic": criticise,
}  # fmt: skip


def _refusal(answer: dict[str, Any]) -> str:
    hint = f" ({answer['hint']})" if answer.get("hint") else ""
    return f"{answer['error']}{hint}" if answer.get("error") else ""


ROLE_LABEL = "adk_agent_name"
"""The label by which google-adk says which agent asks."""


class Planner(BaseLlm):
    """Deterministic, offline, without tokens."""

    model: str = BUILTIN

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names that this class answers to."""
        return [BUILTIN]

    @property
    def capabilities(self) -> LlmCapabilities:
        """It answers a schema through ``set_model_response``, as Gemini with an API key does."""
        return LlmCapabilities(output_schema_and_tools=False)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One whole answer: the tools to call next, or text."""
        labels = (llm_request.config.labels if llm_request.config else None) or {}
        move = ROLES[labels.get(ROLE_LABEL, "")](AgentTurn.of(llm_request.contents, llm_request.tools_dict))
        yield LlmResponse(
            content=types.Content(role="model", parts=_parts(move)),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=0, candidates_token_count=0, total_token_count=0
            ),
        )


def _parts(move: Action) -> list[types.Part]:
    if isinstance(move, str):
        return [types.Part(text=move)]
    calls = (types.FunctionCall(name=call.tool, args=call.arguments) for call in move)
    return [types.Part(function_call=call) for call in calls]


PREFIX = "replay/"


class Recording:
    """The recorded answers of the model of a session.

    Args:
        name: what the model is called in the replay.
        records: of the session.
    """

    def __init__(self, name: str, records: Iterable[Record]):
        self._name = name
        self._answers: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self._ending = "the record holds no further answer of the model to {}"
        agent = ""
        for record in records:
            payload = record.fields
            if record.kind is Kind.NOTE and payload.get("event") == INTERRUPTED:
                self._ending = INTERRUPTED
            if record.kind is Kind.MODEL_REQUEST:
                agent = payload["agent"]
            elif record.kind is Kind.MODEL_RESPONSE and not payload.get("made_up"):
                self._answers[payload["agent"]].append(payload)
            elif record.kind is Kind.ERROR and str(payload.get("where", "")).startswith("model "):
                model = payload["where"].removeprefix("model ")
                self._answers[agent].append({"failure": payload["message"].removeprefix(f"{model}: ")})

    def next(self, agent: str) -> LlmResponse:
        """The next answer of an agent.

        Raises:
            ServiceError: the model failed or was interrupted here, or nothing more is on record.
            BadInputError: what is on record is no answer of a model.
        """
        nothing = {"failure": self._ending.format(agent or "this agent")}
        answer = self._answers[agent].popleft() if self._answers[agent] else nothing
        if "failure" in answer:
            raise ServiceError(answer["failure"], where=self._name)
        with readable(self._name):
            code, _, message = answer.get("error", "").partition(": ")
            return LlmResponse.model_validate(
                {
                    "content": types.Content.model_validate(answer["content"]) if answer.get("content") else None,
                    "usage_metadata": answer.get("usage"),
                    "finish_reason": answer.get("finish_reason"),
                    "error_code": code or None,
                    "error_message": message or None,
                }
            )


class RecordedModel(BaseLlm):
    """The model that replays the recording under its name."""

    recordings: ClassVar[dict[str, Recording]] = {}

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names that this class answers to."""
        return [rf"{PREFIX}.+"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next recorded answer, whole."""
        labels = (llm_request.config.labels if llm_request.config else None) or {}
        yield self.recordings[self.model].next(labels.get(ROLE_LABEL, ""))


@contextmanager
def recorded_model(session: str, records: Iterable[Record]) -> Iterator[str]:
    """The name under which the recorded model of a session answers."""
    LLMRegistry.register(RecordedModel)
    name = f"{PREFIX}{session}"
    with readable(session):
        RecordedModel.recordings[name] = Recording(name, records)
    try:
        yield name
    finally:
        del RecordedModel.recordings[name]
