"""How every agent and every app is made: one model, one set of limits, one memory, one check."""

from collections.abc import Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig
from google.adk.models import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.workflow import BaseNode
from google.genai import types
from pydantic import BaseModel

from asap.agents.settings import BUILTIN, Settings
from asap.core.files import data_folder

COMPACTION_INTERVAL, COMPACTION_OVERLAP = 6, 1
"""Turns of a conversation after which google-adk sums up the older ones; of the summed-up ones, those kept."""


def agent(
    name: str,
    model: BaseLlm,
    settings: Settings,
    description: str,
    tools: Sequence[Any],
    schema: type[BaseModel] | None = None,
    more: str = "",
) -> LlmAgent:
    """An agent with the prompt of its name.

    Args:
        name: of the agent.
        model: behind it.
        settings: with temperature and limit of an answer.
        description: of what it does.
        tools: functions and workflows that it may call.
        schema: of its answer; text without one.
        more: stands after its prompt, and is cached with it.
    """
    return LlmAgent(
        name=name,
        model=model,
        description=description,
        static_instruction=prompt(name) + more,
        tools=[*tools],
        output_schema=schema,
        generate_content_config=types.GenerateContentConfig(
            temperature=settings.temperature, max_output_tokens=settings.max_answer_tokens
        ),
    )


def app(name: str, root: BaseNode, plugins: Sequence[BasePlugin], settings: Settings) -> App:
    """An app; with a language model its conversations are summed up by google-adk as they grow."""
    compacted = None
    if settings.model != BUILTIN:
        compacted = EventsCompactionConfig(compaction_interval=COMPACTION_INTERVAL, overlap_size=COMPACTION_OVERLAP)
    return App(name=name, root_agent=root, plugins=[*plugins], events_compaction_config=compacted)


def prompt(name: str) -> str:
    """The instructions of an agent."""
    return (data_folder("prompts") / f"{name}.md").read_text(encoding="utf-8")
