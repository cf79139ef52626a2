"""One turn with a language model: one agent reads the message, asks the queries, and answers.

Its words pass the same guard as an analysis: a figure that no tool returned is sent back, and then removed.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from asap.agents.guardrails.complaints import Complaint
from asap.agents.guardrails.line_filter import LineFilter
from asap.agents.guardrails.transcript import Transcript
from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import Settings
from asap.agents.tools.results import Answer
from asap.agents.tools.toolbox import LIBRARY, PLANS, RUN, Tool, tool_of
from asap.agents.workflow.adk_run import LONGEST_REASON, NO_LIMIT, as_service_error, suppress_adk_output
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.sessions import USER, open_sessions
from asap.answers.inquiries import Inquiries
from asap.answers.inquiry import Inquiry
from asap.core.errors import ServiceError
from asap.core.files import data_folder
from asap.core.secrets import redacted
from asap.core.text import fenced, plain
from asap.sharding_memory import Kind, Worklog, read_session

APP = "chat"
"""Name of the app, under which its conversations are kept."""
MAX_CORRECTIONS = 2
OPENING = ("run", "bottleneck", "candidates")
"""Queries whose answers stand in the instructions, as the run and its latest analysis."""
REWRITE_REQUEST = "What you wrote from this line on was not shown. Rewrite it from there, corrected:"
REMOVED_NOTICE = "! Figures that no tool returned were removed from this answer."


def ask_model(
    settings: Settings,
    inquiry: Inquiry,
    worklog: Worklog,
    text: str,
    show: Callable[[str], None],
    facts: Sequence[Tool] = (),
    progress: Callable[[str], None] = lambda stage: None,
) -> str:
    """The model's answer to a message; each line is shown once it is complete and resolves.

    Args:
        settings: with the language model and its limits.
        inquiry: the run, with the facts on record.
        worklog: of the session.
        text: what the engineer said.
        show: called with each line.
        facts: tools that put facts on record, take them off and list them.
        progress: called with what is being done and what was spent so far.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, gave an empty answer or reached a limit.
    """
    plugin, meter = MemoryPlugin(worklog, logged_input=text), UsageMeter(settings.model, settings)
    with suppress_adk_output():
        opening = _opening(inquiry)
        app = build_chat(inquiry, settings, opening, facts, plugin, meter)
        lines = LineFilter(_transcript(app, worklog.session, text, opening), _instructions(), show)
        try:
            with as_service_error(settings.model):
                asyncio.run(_converse(app, worklog.session, text, lines, meter.telling(progress)))
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))
    if not any(lines.shown):
        raise ServiceError("the model gave an empty answer", where=settings.model)
    return "\n".join(lines.shown)


def build_chat(
    inquiry: Inquiry,
    settings: Settings,
    opening: dict[str, Answer],
    facts: Sequence[Tool],
    plugin: MemoryPlugin,
    meter: UsageMeter,
) -> App:
    """The agent of a chat: the queries of one run as tools, the run and its analysis in the instructions.

    Raises:
        UsageError: no such model is known.
    """
    inquiries = Inquiries(inquiry.store)
    inquiries.keep(inquiry)
    queries = [tool_of(name, inquiries, inquiry.id) for name in (*RUN, *PLANS, *LIBRARY)]
    known = "\n".join(fenced(json.dumps(answer, ensure_ascii=False), name) for name, answer in opening.items())
    agent = LlmAgent(
        name=APP,
        model=language_model(settings, meter),
        description="Discusses the analysis of a run.",
        static_instruction=f"{_prompt()}\n## The run and its latest analysis\n\n{known}\n",
        tools=[*queries, *facts],
    )
    evidence = TranscriptPlugin([tool.__name__ for tool in (*queries, *facts)])
    return App(name=APP, root_agent=agent, plugins=[plugin, evidence])


def _opening(inquiry: Inquiry) -> dict[str, Answer]:
    inquiries = Inquiries(inquiry.store)
    inquiries.keep(inquiry)
    return {name: tool_of(name, inquiries, inquiry.id)() for name in OPENING}


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
            if not text or event.author != APP:
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


def _transcript(app: App, session: str, text: str, opening: dict[str, Answer]) -> Transcript:
    """What the model may quote: the tools of the session, the run and its analysis, and the engineer."""
    evidence = next(plugin for plugin in app.plugins if isinstance(plugin, TranscriptPlugin))
    transcript = evidence.transcript(session)
    for record in read_session(session):
        if record.kind is Kind.TOOL_RESULT:
            transcript.record(str(record.fields.get("tool")), record.fields.get("result"))
    for name, answer in opening.items():
        transcript.record(name, answer)
    ranked = [f"{rank}. {plan}" for rank, plan in enumerate(opening["candidates"].get("proposals", ()), 1)]
    transcript.record("engine", {"statement": "\n".join(ranked)})
    transcript.record("engineer", {"statement": redacted(text)})
    return transcript


def _prompt() -> str:
    return (data_folder("prompts") / "chat.md").read_text(encoding="utf-8")


def _instructions() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(data_folder("prompts").glob("*.md")))
