"""Models of google-adk that need no service: ``builtin/planner``, and the answers on record of a session."""

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from google.adk.models import BaseLlm, LlmCapabilities, LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.llm.roles import ROLES, Action, AgentTurn
from asap.agents.settings import BUILTIN
from asap.core.errors import ServiceError
from asap.sharding_memory import INTERRUPTED, Kind, Record, readable

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
