"""One turn with a language model: the coordinator answers over the session of the analysis.

It gets the engine's own answer next to the message, so that its figures need not be guessed. What it says passes the
same guard as an analysis, and the order of the proposals is not its to change.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing, suppress

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.genai import types

from asap.agents.chat.gate import Gate
from asap.agents.chat.reply import Reply
from asap.agents.desk import Desk
from asap.agents.evidence import Evidence
from asap.agents.guard import Complaint, Told
from asap.agents.memory_plugin import MemoryPlugin
from asap.agents.meter import Meter
from asap.agents.runner import LONGEST_REASON, NO_LIMIT, one_failure, quiet
from asap.agents.sessions import USER, open_sessions
from asap.agents.settings import Settings
from asap.agents.team import build_app
from asap.agents.usage import usage_entry
from asap.core.errors import ServiceError
from asap.core.files import data_folder
from asap.core.text import fenced, plain, redact
from asap.sharding_memory import Kind, Worklog, read_session

LAST_REFUSAL = 2
COORDINATOR = "coordinator"
BESIDE = "The engine's own answer to this message follows. Its figures and its order hold; put it in your words."
REFUSED = "What you wrote from this line on was not shown. Write it again from there, corrected:"
STRUCK = "! Figures that no tool gave were struck from this answer."

_CITED = re.compile(r"\[([A-Za-z0-9][\w.:-]{2,120})[\],]")


def ask_model(
    settings: Settings, desk: Desk, worklog: Worklog, text: str, answer: Reply, show: Callable[[str], None]
) -> str:
    """What the model says to a message; each line is shown when it is whole and resolves.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, said nothing or reached a limit.
    """
    message = f"{text}\n\n{BESIDE}\n{fenced(redact(answer.text), 'engine')}"
    plugin, meter = MemoryPlugin(worklog, heard=message), Meter(settings.model, settings)
    with quiet():
        app = build_app(desk, settings.model, plugin, meter)
        gate = Gate(_told(app, worklog.session, text, answer), _instructions(), show)
        try:
            with one_failure(settings.model):
                asyncio.run(_converse(app, worklog.session, message, gate))
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))
    if not any(gate.shown):
        raise ServiceError("the model said nothing", where=settings.model)
    return "\n".join(gate.shown)


async def _converse(app: App, session: str, message: str, gate: Gate) -> None:
    """Ask; what does not resolve goes back with the complaint, at most twice, and is then struck."""
    runner = Runner(app=app, session_service=await open_sessions(app.name, session))
    try:
        for attempt in range(LAST_REFUSAL + 1):
            await _ask(runner, session, message, gate)
            if not gate.wrong:
                return
            if attempt < LAST_REFUSAL:
                message = _refusal(gate)
                gate.again()
        gate.strike()
        gate.show(f"{STRUCK}\n")
    finally:
        with suppress(Exception):
            await runner.close()


async def _ask(runner: Runner, session: str, message: str, gate: Gate) -> None:
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
            text = "".join(part.text for part in (event.content.parts if event.content else None) or () if part.text)
            if not text or event.author != COORDINATOR:
                continue
            if event.partial or not streamed:
                gate.write(text)
            if not event.partial:
                gate.end()
            streamed = bool(event.partial)


def _refusal(gate: Gate) -> str:
    return "\n".join([REFUSED, fenced(gate.held[0], "your line"), *map(_complaint, gate.wrong)])


def _complaint(one: Complaint) -> str:
    return f"- {one.what}: {one.why}; {one.right}"


def _told(app: App, session: str, text: str, answer: Reply) -> Told:
    """What may be said: what the tools of the session, the engine's answer and the engineer have said."""
    evidence = next(plugin for plugin in app.plugins if isinstance(plugin, Evidence))
    told = evidence.told(session)
    for record in read_session(session):
        if record.kind is Kind.TOOL_RESULT and isinstance(record.payload, dict):
            told.hear(str(record.payload.get("tool")), record.payload.get("result"))
    told.hear("engine", {"statement": answer.text, "facts": answer.model_dump(mode="json")["facts"]})
    told.hear("engineer", {"statement": text})
    for name in _CITED.findall(answer.text):
        told.sources.setdefault(name, [])
    return told


def _instructions() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(data_folder("prompts").glob("*.md")))
