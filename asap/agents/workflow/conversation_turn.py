"""One turn with a language model: the coordinator answers over the session of the analysis.

It gets the engine's own answer with the message, so it need not guess figures. Its answer passes the same guard as an
analysis, and it cannot change the order of the proposals.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from asap.agents.guardrails.complaints import Complaint
from asap.agents.guardrails.line_filter import LineFilter
from asap.agents.guardrails.transcript import Transcript
from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import Settings
from asap.agents.tools.toolbox import Tool
from asap.agents.workflow.adk_run import LONGEST_REASON, NO_LIMIT, as_service_error, suppress_adk_output
from asap.agents.workflow.app import build_app
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.sessions import USER, open_sessions
from asap.answers.inquiries import Inquiries
from asap.core.errors import ServiceError
from asap.core.files import data_folder
from asap.core.secrets import redacted
from asap.core.text import fenced, plain
from asap.sharding_memory import Kind, Worklog, read_session

MAX_CORRECTIONS = 2
COORDINATOR = "coordinator"
ENGINE_ANSWER_INTRO = (
    "The engine's own answer to this message follows. Keep its figures and its order, and put it in your own words."
)
REWRITE_REQUEST = "What you wrote from this line on was not shown. Rewrite it from there, corrected:"
REMOVED_NOTICE = "! Figures that no tool returned were removed from this answer."


@dataclass(frozen=True)
class EngineAnswer:
    """What the engine answers to the same message.

    Args:
        text: its words.
        facts: as they are in a reply's JSON.
        quotable: whether the figures of the message are the engineer's own.
    """

    text: str
    facts: tuple[dict[str, Any], ...] = ()
    quotable: bool = True


_CITED = re.compile(r"\[([A-Za-z0-9][\w.:-]{2,120})[\],]")


def ask_model(
    settings: Settings,
    studies: Inquiries,
    worklog: Worklog,
    text: str,
    answer: EngineAnswer,
    show: Callable[[str], None],
    tools: Sequence[Tool] = (),
    progress: Callable[[str], None] = lambda stage: None,
) -> str:
    """The model's answer to a message; each line is shown once it is complete and resolves.

    Args:
        settings: with the language model and its limits.
        studies: what the tools read.
        worklog: of the session.
        text: what the engineer said.
        answer: the engine's own.
        show: called with each line.
        tools: what the coordinator may call beside the engine's tools.
        progress: called with what is being done and what was spent so far.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, gave an empty answer or reached a limit.
    """
    message = f"{text}\n\n{ENGINE_ANSWER_INTRO}\n{fenced(redacted(answer.text), 'engine')}"
    plugin, meter = MemoryPlugin(worklog, logged_input=message), UsageMeter(settings.model, settings)
    with suppress_adk_output():
        app = build_app(studies, settings, plugin, meter, tools)
        lines = LineFilter(_transcript(app, worklog.session, text, answer), _instructions(), show)
        try:
            with as_service_error(settings.model):
                asyncio.run(_converse(app, worklog.session, message, lines, meter.telling(progress)))
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))
    if not any(lines.shown):
        raise ServiceError("the model gave an empty answer", where=settings.model)
    return "\n".join(lines.shown)


async def _converse(app: App, session: str, message: str, lines: LineFilter, progress: Callable[[str], None]) -> None:
    """Ask; what does not resolve is sent back with the complaint, at most twice, and then removed."""
    runner = Runner(app=app, session_service=await open_sessions(app.name, session))
    try:
        for attempt in range(MAX_CORRECTIONS + 1):
            progress("the model thinks" if attempt == 0 else "the model corrects its answer")
            await _ask(runner, session, message, lines, progress)
            if not lines.complaints:
                return
            if attempt < MAX_CORRECTIONS:
                message = _refusal(lines)
                lines.reset()
        lines.release()
        lines.show(f"{REMOVED_NOTICE}\n")
    finally:
        with suppress(Exception):
            await runner.close()


async def _ask(runner: Runner, session: str, message: str, lines: LineFilter, progress: Callable[[str], None]) -> None:
    streamed = False
    events = runner.run_async(
        user_id=USER,
        session_id=session,
        new_message=types.UserContent(message),
        run_config=RunConfig.model_validate({"max_llm_calls": NO_LIMIT, "streaming_mode": "sse"}),
    )
    async with aclosing(events):
        async for event in events:
            if event.error_code:
                raise ServiceError(plain(f"{event.error_code} {event.error_message or ''}", LONGEST_REASON))
            for call in event.get_function_calls():
                progress(f"{event.author}: {call.name}")
            text = "".join(part.text for part in (event.content.parts if event.content else None) or () if part.text)
            if not text or event.author != COORDINATOR:
                continue
            if event.partial or not streamed:
                lines.write(text)
            if not event.partial:
                lines.flush()
            streamed = bool(event.partial)


def _refusal(lines: LineFilter) -> str:
    return "\n".join([REWRITE_REQUEST, fenced(lines.withheld[0], "your line"), *map(_complaint, lines.complaints)])


def _complaint(one: Complaint) -> str:
    return f"- {one.what}: {one.why}; {one.right}"


def _transcript(app: App, session: str, text: str, answer: EngineAnswer) -> Transcript:
    """What the model may quote: the tools of the session, the engine's answer and the engineer."""
    evidence = next(plugin for plugin in app.plugins if isinstance(plugin, TranscriptPlugin))
    transcript = evidence.transcript(session)
    for record in read_session(session):
        if record.kind is Kind.TOOL_RESULT:
            transcript.record(str(record.fields.get("tool")), record.fields.get("result"))
    transcript.record("engine", {"statement": answer.text, "facts": list(answer.facts)})
    if answer.quotable:
        transcript.record("engineer", {"statement": text})
    for name in _CITED.findall(answer.text):
        transcript.sources.setdefault(name, [])
    return transcript


def _instructions() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(data_folder("prompts").glob("*.md")))
