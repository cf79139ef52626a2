"""What goes into the worklog when things go wrong on the way."""

import asyncio

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from asap.agents.llm.planner import Planner
from asap.agents.workflow.analyze import analyze
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.answers.run_queries import Bottleneck
from asap.sharding_memory import Kind, verify_session


def made_up(callback_context, llm_request):
    content = types.Content(role="model", parts=[types.Part(text="made up, not asked")])
    return LlmResponse(content=content)


def converse(session: str, text: str, plugin: MemoryPlugin, **agent) -> None:
    coordinator = LlmAgent(name="coordinator", model=Planner(), **agent)
    runner = InMemoryRunner(app=App(name="agents", root_agent=coordinator, plugins=[plugin]))
    runner.auto_create_session = True

    async def run() -> None:
        message = types.UserContent(text)
        async for _ in runner.run_async(user_id="engineer", session_id=session, new_message=message):
            pass
        await runner.close()

    asyncio.run(run())


def test_an_answer_that_a_callback_made_up_is_on_record(log):
    converse("made-up", "hello", MemoryPlugin(), before_model_callback=made_up)
    records = log("made-up")
    assert [record.kind for record in records] == [Kind.USER_INPUT, Kind.MODEL_REQUEST, Kind.MODEL_RESPONSE]
    assert records[-1].payload["made_up"]
    assert "made up, not asked" in str(records[-1].payload["content"])


def test_an_answer_of_the_model_is_on_record_once(log):
    converse("asked", "hello", MemoryPlugin())
    records = log("asked")
    assert [record.kind for record in records] == [Kind.USER_INPUT, Kind.MODEL_REQUEST, Kind.MODEL_RESPONSE]
    assert "made_up" not in records[-1].payload


def test_secrets_of_users_do_not_reach_the_disk(log):
    converse("secret", "my api_key=sk-1234567890abcdefghij, analyze nothing", MemoryPlugin())
    assert "sk-1234567890" not in str(log("secret"))


def test_a_session_whose_name_is_no_file_name_does_not_stop_the_run():
    converse("../../outside", "hello", MemoryPlugin())


def test_a_step_that_cannot_be_put_into_words_is_logged_as_an_error(log, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("no words")

    monkeypatch.setattr("asap.agents.workflow.memory_plugin.request_entry", fail)
    converse("wordless", "hello", MemoryPlugin())
    kinds = [record.kind for record in log("wordless")]
    assert kinds == [Kind.USER_INPUT, Kind.ERROR, Kind.MODEL_RESPONSE]


def test_a_query_that_breaks_ends_the_run_and_is_on_record(store, log, monkeypatch):
    def broken(self, inquiry):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(Bottleneck, "answer", broken)
    with pytest.raises(ZeroDivisionError):
        analyze("paper-v6e-16", store=store, session="broken-tool")
    assert [error.payload["where"] for error in log("broken-tool", Kind.ERROR)] == ["analysis"]
    assert verify_session("broken-tool").ok
