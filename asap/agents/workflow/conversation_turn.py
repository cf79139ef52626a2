"""One turn with a language model: one agent reads the message, asks the queries, and answers.

What it says is shown line by line, with values for references and its own words marked.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress

from google.adk.apps import App
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.runners import Runner
from google.genai import types

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.grounding.plugin import GroundingPlugin, spoken
from asap.agents.grounding.verdict import legend
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.settings import Settings
from asap.agents.tools.toolbox import Tool, tool_of
from asap.agents.workflow.adk_run import error_of, events_of, metered, open_sessions, running_adk
from asap.agents.workflow.app import agent, app
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.answers.inquiries import Inquiries
from asap.answers.inquiry import Inquiry
from asap.core.errors import ServiceError
from asap.core.text import fenced
from asap.reports.answers.compact import without
from asap.sharding_memory import Worklog

APP = "chat"
"""Name of the app, under which its conversations are kept."""
OPENING: dict[str, dict[str, int]] = {"run": {}, "bottleneck": {}, "candidates": {"limit": 2}}
"""Queries with their arguments whose answers stand in the instructions, as the run and its latest analysis."""
LOOKED_UP = {
    "description", "settings", "warnings", "statement", "shares", "correlation", "tokens_per_second", "mfu",
    "fits_odds", "strategy", "published", "considered", "evidence", "missing", "notes", "proposals",
}  # fmt: skip
"""Parts of these answers that a tool has where they are asked for; the findings say what the statement says."""


def ask_model(
    settings: Settings,
    inquiry: Inquiry,
    catalogues: Catalogues,
    worklog: Worklog,
    text: str,
    show: Callable[[str], None],
    tools: Sequence[Tool] = (),
    progress: Callable[[str], None] = lambda stage: None,
) -> str:
    """The model's answer to a message; each line is shown once it is complete.

    Args:
        settings: with the language model and its limits.
        inquiry: the run, with the facts on record.
        catalogues: where tools keep the figures of their answers.
        worklog: of the session.
        text: what the engineer said.
        show: called with each line.
        tools: that ask the engine, and put facts on record.
        progress: called with what is being done and what was spent so far.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, gave an empty answer or reached a limit.
    """
    memory, meter = MemoryPlugin(worklog, logged_input=text), UsageMeter(settings.model, settings)
    with running_adk():
        built = build_chat(inquiry, catalogues, settings, tools, memory, meter)
        with metered(settings.model, worklog, meter):
            words = asyncio.run(_converse(built, worklog.session, text, show, meter.telling(progress)))
    if not words.strip():
        raise ServiceError("the model gave an empty answer", where=settings.model)
    if marks := legend(words):
        show(f"({marks})\n")
    return words


def build_chat(
    inquiry: Inquiry,
    catalogues: Catalogues,
    settings: Settings,
    tools: Sequence[Tool],
    memory: MemoryPlugin,
    meter: UsageMeter,
) -> App:
    """The agent of a chat: the language of the chat as its tools, the run and its analysis in the instructions.

    Raises:
        UsageError: no such model is known.
    """
    inquiries = Inquiries(inquiry.store)
    inquiries.keep(inquiry)
    opening = {
        name: tool_of(name, inquiries, catalogues, inquiry.id)(**arguments) for name, arguments in OPENING.items()
    }
    known = "\n".join(
        fenced(json.dumps(without(answer, LOOKED_UP), ensure_ascii=False, separators=(",", ":")), name)
        for name, answer in opening.items()
    )
    chat = agent(
        APP, language_model(settings, meter), settings, "Discusses the analysis of a run.",
        tools, more=f"\n## The run and its latest analysis\n\n{known}\n",
    )  # fmt: skip
    shortened = ContextFilterPlugin(custom_filter=words_before)
    return app(APP, chat, [shortened, memory, GroundingPlugin(catalogues, [APP])], settings)


def words_before(contents: list[types.Content]) -> list[types.Content]:
    """A conversation in which only the last message keeps its calls of tools: earlier answers are told by the words."""
    last = max((at for at, one in enumerate(contents) if one.role == "user" and spoken(one)), default=0)
    said = ((one.role, [part for part in one.parts or () if part.text]) for one in contents[:last])
    return [*(types.Content(role=role, parts=parts) for role, parts in said if parts), *contents[last:]]


async def _converse(
    built: App, session: str, message: str, show: Callable[[str], None], progress: Callable[[str], None]
) -> str:
    """The whole answer, of which each line was shown."""
    runner = Runner(app=built, session_service=await open_sessions(built.name, session))
    said, open_ = "", ""
    progress("the model thinks")
    try:
        async with aclosing(events_of(runner, session, message, progress, streamed=True)) as events:
            async for event in events:
                if failed := error_of(event):
                    raise failed
                text = spoken(event.content)
                if not text or event.author != APP:
                    continue
                show(text if event.partial else f"{text.removeprefix(open_)}\n")
                open_ = open_ + text if event.partial else ""
                said += "" if event.partial else f"{text}\n"
    finally:
        with suppress(Exception):
            await runner.close()
    return said.rstrip("\n")
