"""Language models that misbehave, each in its own way. They are registered with google-adk like any other."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.models import LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.llm.planner import Planner
from asap.agents.llm.roles import AgentTurn


def say(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def call(tool: str, **arguments) -> LlmResponse:
    function_call = types.FunctionCall(name=tool, args=arguments)
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=function_call)]))


Answers = AsyncGenerator[LlmResponse, None]


class Misbehaving(Planner):
    """The built-in model, but for what one agent says."""

    agent: str = "proposal"

    def instead(self, turn: AgentTurn) -> LlmResponse | None:
        """What it says; None for what the built-in model would say."""
        raise NotImplementedError

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Answers:
        answer = None
        if (llm_request.config.labels or {})["adk_agent_name"] == self.agent:
            answer = self.instead(AgentTurn.of(llm_request.contents))
        if answer is not None:
            yield answer
            return
        async for response in super().generate_content_async(llm_request, stream):
            yield response


class Picks(Misbehaving):
    """Always picks what its name says: test/picks:PLAN|PLAN."""

    @classmethod
    def supported_models(cls):
        return [r"test/picks.*"]

    def instead(self, turn):
        plans = self.model.partition("#")[2].split("|")
        picks = [{"plan": plan, "reason": "it saves 99 %"} for plan in plans]
        return call("set_model_response", picks=picks, recommendation="believe me")


class Reasoned(Misbehaving):
    """Puts the engine's second choice first, each with references to figures that the engine gave."""

    @classmethod
    def supported_models(cls):
        return ["test/reasoned"]

    def instead(self, turn):
        first, second, *others = turn.request["facts"]["candidates"]["proposals"]
        reason = "A step takes {{{0}.step_time}}, a change of {{{0}.vs_now}}."
        picks = [{"plan": plan, "reason": reason.format(plan.replace(" ", ","))} for plan in (second, first, *others)]
        return call("set_model_response", picks=picks, recommendation="Last first.")


class Refused(Misbehaving):
    """Its connection is refused."""

    agent: str = "analyzer"

    @classmethod
    def supported_models(cls):
        return ["test/refused"]

    def instead(self, turn):
        raise ConnectionError("connection refused, api_key=do-not-log-me-please")


class Half(Misbehaving):
    """Its analyzer answers in words of its own, then the connection is gone."""

    @classmethod
    def supported_models(cls):
        return ["test/half"]

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Answers:
        if (llm_request.config.labels or {})["adk_agent_name"] != "analyzer":
            raise ConnectionError("gone")
        yield say("The all-reduce looks slow to me.")


class Sleeping(Misbehaving):
    """Thinks for ever."""

    @classmethod
    def supported_models(cls):
        return ["test/sleeping"]

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Answers:
        if (llm_request.config.labels or {})["adk_agent_name"] == self.agent:
            print("thinking", flush=True)
            await asyncio.sleep(600)
        async for response in super().generate_content_async(llm_request, stream):
            yield response


def register() -> None:
    """Make the models known by name."""
    for model in (Picks, Reasoned, Refused, Half, Sleeping):
        LLMRegistry.register(model)
