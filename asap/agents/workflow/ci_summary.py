"""A language model's summary of a report of ``asap ci``, used only if every figure is in the report."""

import asyncio
import json
from contextlib import suppress

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from asap.agents.guardrails.complaints import Complaint, complaints, sanitize
from asap.agents.guardrails.transcript import Transcript
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import BUILTIN, Settings
from asap.agents.tools.results import Answer, harmless
from asap.agents.workflow.adk_run import as_service_error, ask, suppress_adk_output
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.sessions import USER
from asap.ci.render.comment import headline
from asap.ci.report import CiReport, ConfigurationReport, Side, Suggestion
from asap.core.errors import ServiceError, UsageError
from asap.core.files import data_folder
from asap.core.text import fenced
from asap.sharding_memory import Kind, Worklog

REVIEWER = "reviewer"
ATTEMPTS = 3
MOST_CONFIGURATIONS = 10
"""Configurations that the model sees, those with findings first."""


def summarize(report: CiReport, settings: Settings, worklog: Worklog) -> str:
    """A model's summary of a report, in one paragraph of plain text.

    Raises:
        UsageError: no such model is known, or it is the built-in one, which writes no prose.
        ServiceError: the model failed, reached a limit, or insisted on figures that are not in the report.
    """
    if settings.model == BUILTIN:
        raise UsageError("writes no prose: name a language model", where=f"--llm {BUILTIN}")
    meter, facts = UsageMeter(settings.model, settings), harmless(_facts(report))
    with suppress_adk_output():
        instruction = (data_folder("prompts") / f"{REVIEWER}.md").read_text(encoding="utf-8")
        model = language_model(settings, meter)
        agent = LlmAgent(name=REVIEWER, model=model, static_instruction=instruction)
        app = App(name="ci", root_agent=agent, plugins=[MemoryPlugin(worklog)])
        try:
            with as_service_error(settings.model):
                return asyncio.run(_converse(app, worklog.session, facts, instruction))
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))


async def _converse(app: App, session: str, facts: Answer, instruction: str) -> str:
    """Ask; what does not resolve is sent back with the complaint."""
    transcript = Transcript()
    transcript.record("report", facts)
    sessions = InMemorySessionService()
    await sessions.create_session(app_name=app.name, user_id=USER, session_id=session)
    runner = Runner(app=app, session_service=sessions)
    message = fenced(json.dumps(facts, ensure_ascii=False), "report")
    try:
        for _ in range(ATTEMPTS):
            words = sanitize(await ask(runner, session, message))
            wrong = complaints("what you wrote", words, transcript, (instruction,))
            if words and not wrong:
                return words
            message = "\n".join(map(_complaint, wrong)) or "You wrote nothing."
    finally:
        with suppress(Exception):
            await runner.close()
    raise ServiceError("the model stated figures that are not in the report", where=app.name)


def _complaint(one: Complaint) -> str:
    return f"- {one.what}: {one.why}; {one.right}"


def _facts(report: CiReport) -> Answer:
    """The report without its diffs, in fields whose figures are the engine's own."""
    with_findings = {finding.path for finding in report.findings}
    order = sorted(report.configurations, key=lambda one: one.path not in with_findings)[:MOST_CONFIGURATIONS]
    return {
        "statement": headline(report),
        "findings": [{"path": f.path, "level": f.level, "message": f.message} for f in report.findings],
        "configurations": [_configuration(one) for one in order],
    }


def _configuration(one: ConfigurationReport) -> Answer:
    facts = one.model_dump(mode="json", exclude_none=True, include={"path", "status", "relative_cost", "precedent"})
    sides = {"base": _side(one.before), "head": _side(one.after)}
    return facts | sides | {"proposals": [_proposal(suggestion) for suggestion in one.suggestions]}


def _side(side: Side | None) -> Answer:
    if side is None:
        return {}
    facts = side.model_dump(mode="json", exclude_none=True, exclude={"prediction"})
    if side.prediction is None:
        return facts
    prediction = side.prediction.model_dump(mode="json", exclude_none=True)
    capacity = prediction.pop("hbm_capacity", None)
    return facts | prediction | ({"capacity_bytes": capacity} if capacity else {})


def _proposal(suggestion: Suggestion) -> Answer:
    names = {"title", "plan", "step_time", "relative_step_time", "hbm", "faster"}
    return suggestion.model_dump(mode="json", exclude_none=True, include=names)
