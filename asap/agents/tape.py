"""A model that says again what a session has on record: answers and failures, agent by agent, in their order."""

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable
from typing import Any, ClassVar

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.planner import ROLE_LABEL
from asap.core.errors import ServiceError
from asap.sharding_memory import Kind, Record

PREFIX = "replay/"


class Tape:
    """What the model of a session has said.

    Args:
        name: what the model is called in the replay.
        records: of the session.
    """

    def __init__(self, name: str, records: Iterable[Record]):
        self._name = name
        self._said: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        agent = ""
        for record in records:
            payload = record.payload
            if record.kind is Kind.MODEL_REQUEST:
                agent = payload["agent"]
            elif record.kind is Kind.MODEL_RESPONSE and not payload.get("made_up"):
                self._said[payload["agent"]].append(payload)
            elif record.kind is Kind.ERROR and str(payload.get("where", "")).startswith("model "):
                model = payload["where"].removeprefix("model ")
                self._said[agent].append({"failure": payload["message"].removeprefix(f"{model}: ")})

    def next(self, agent: str) -> LlmResponse:
        """The next answer of an agent.

        Raises:
            ServiceError: the model failed here, or nothing more is on record.
        """
        nothing = {"failure": f"the record holds no further answer of the model to {agent or 'this agent'}"}
        said = self._said[agent].popleft() if self._said[agent] else nothing
        if "failure" in said:
            raise ServiceError(said["failure"], where=self._name)
        code, _, message = said.get("error", "").partition(": ")
        return LlmResponse.model_validate(
            {
                "content": types.Content.model_validate(said["content"]) if said.get("content") else None,
                "usage_metadata": said.get("usage"),
                "finish_reason": said.get("finish_reason"),
                "error_code": code or None,
                "error_message": message or None,
            }
        )


class Recorded(BaseLlm):
    """The model of the tape that is mounted under its name."""

    tapes: ClassVar[dict[str, Tape]] = {}

    @classmethod
    def supported_models(cls) -> list[str]:
        """Names that this class answers to."""
        return [rf"{PREFIX}.+"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next recorded answer, whole."""
        labels = (llm_request.config.labels if llm_request.config else None) or {}
        yield self.tapes[self.model].next(labels.get(ROLE_LABEL, ""))
