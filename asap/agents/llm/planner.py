"""``builtin/planner``: the model that needs no key.

It is a language model to google-adk and a fixed procedure inside: it calls the same tools in the order that the prompts
ask for, takes the engine's findings and the engine's choice, and answers through the same schemas.
"""

from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm, LlmCapabilities
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.llm.procedure import ROLES, Action
from asap.agents.llm.turn import AgentTurn
from asap.agents.settings import BUILTIN

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
