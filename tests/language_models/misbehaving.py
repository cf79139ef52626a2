"""Language models that misbehave, each in its own way. They are registered with google-adk like any other."""

import asyncio
import re
from collections.abc import AsyncGenerator

from google.adk.models import LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from asap.agents.llm.planner import Planner
from asap.agents.llm.turn import AgentTurn
from asap.reports.answers.compact import unrolled


def say(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def call(tool: str, **arguments) -> LlmResponse:
    function_call = types.FunctionCall(name=tool, args=arguments)
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=function_call)]))


class Misbehaving(Planner):
    """The built-in model, but for what one agent says."""

    agent: str = "proposal"

    def instead(self, turn: AgentTurn) -> LlmResponse | None:
        """What it says; None for what the built-in model would say."""
        raise NotImplementedError

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
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
    """Puts the engine's second choice first, each time with a figure that the engine gave."""

    @classmethod
    def supported_models(cls):
        return ["test/reasoned"]

    def instead(self, turn):
        if "candidates" not in turn.answers:
            return call("candidates", experiment=turn.request["experiment"])
        ranked = unrolled(turn.answers["candidates"])
        change = {c["plan"]: c["vs_now"] for c in ranked["candidates"]}
        reason = "Its step time changes by {}, and at the end of its interval by {}."
        first, second, *others = ranked["proposals"]
        chosen = [second, first, *others]
        picks = [
            {"plan": plan, "reason": reason.format(*re.split(r" \(.* to |\)", change[plan])[:2])} for plan in chosen
        ]
        return call("set_model_response", picks=picks, recommendation="Last first.")


class Corrected(Misbehaving):
    """Picks nonsense until somebody complains."""

    @classmethod
    def supported_models(cls):
        return ["test/corrected"]

    def instead(self, turn):
        if "complaint" in turn.answers.get("set_model_response", {}):
            return None
        return call("set_model_response", picks=[{"plan": "model=3", "reason": "?"}], recommendation="?")


class Prose(Misbehaving):
    """Answers in prose where a schema is asked for."""

    @classmethod
    def supported_models(cls):
        return ["test/prose"]

    def instead(self, turn):
        return say("I would simply use more chips.")


class Refused(Misbehaving):
    """Its connection is refused."""

    agent: str = "analyzer"

    @classmethod
    def supported_models(cls):
        return ["test/refused"]

    def instead(self, turn):
        raise ConnectionError("connection refused, api_key=do-not-log-me-please")


class Endless(Misbehaving):
    """Calls one tool for ever."""

    agent: str = "analyzer"

    @classmethod
    def supported_models(cls):
        return ["test/endless"]

    def instead(self, turn):
        return call("health", experiment="paper-v6e-16")


class Blocked(Misbehaving):
    """Is stopped by a safety filter: no content, an error code, nothing raised."""

    agent: str = "coordinator"

    @classmethod
    def supported_models(cls):
        return ["test/blocked"]

    def instead(self, turn):
        return LlmResponse(error_code="SAFETY", error_message="blocked")


class Elsewhere(Misbehaving):
    """Has another experiment analysed than the one it was asked for."""

    agent: str = "coordinator"

    @classmethod
    def supported_models(cls):
        return ["test/elsewhere"]

    def instead(self, turn):
        if "analyze_experiment" not in turn.answers:
            return call("analyze_experiment", experiment="paper-v5p-512")
        return say("Done.")


class WrongArguments(Misbehaving):
    """Calls tools that do not exist and tools with wrong arguments, then carries on."""

    agent: str = "analyzer"

    @classmethod
    def supported_models(cls):
        return ["test/wrong-arguments"]

    def instead(self, turn):
        if "run_shell" not in turn.answers:
            return call("run_shell", command="rm -rf /")
        if "operations" not in turn.answers:
            return call("operations", experiment="paper-v6e-16", limit="many", colour="red")
        return None


class Sleeping(Misbehaving):
    """Thinks for ever."""

    @classmethod
    def supported_models(cls):
        return ["test/sleeping"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if (llm_request.config.labels or {})["adk_agent_name"] == self.agent:
            print("thinking", flush=True)
            await asyncio.sleep(600)
        async for response in super().generate_content_async(llm_request, stream):
            yield response


def register() -> None:
    """Make the models known by name."""
    for model in (Picks, Reasoned, Corrected, Prose, Refused, Endless, Blocked, Elsewhere, WrongArguments, Sleeping):
        LLMRegistry.register(model)
