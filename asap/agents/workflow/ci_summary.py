"""A language model's summary of a report of ``asap ci``, in which its own words are marked."""

import asyncio
import json

from google.adk.apps import App

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.grounding.prose import named
from asap.agents.grounding.verdict import check, faults, rendered
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.models import language_model
from asap.agents.settings import BUILTIN, Settings
from asap.agents.tools.toolbox import Answer, harmless
from asap.agents.workflow.adk_run import conversation, metered, running_adk
from asap.agents.workflow.app import agent, app
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.ci.render.comment import headline
from asap.ci.report import CiReport, ConfigurationReport, Side
from asap.core.errors import ServiceError, UsageError
from asap.core.text import fenced
from asap.sharding_memory import Worklog

REVIEWER = "reviewer"
ATTEMPTS = 2
MOST_CONFIGURATIONS = 10
"""Configurations that the model sees, those with findings first."""


def summarize(report: CiReport, settings: Settings, worklog: Worklog) -> str:
    """A model's summary of a report, in one paragraph of plain text.

    Raises:
        UsageError: no such model is known, or it is the built-in one, which writes no prose.
        ServiceError: the model failed, reached a limit, or wrote nothing.
    """
    if settings.model == BUILTIN:
        raise UsageError("writes no prose: name a language model", where=f"--llm {BUILTIN}")
    meter, facts = UsageMeter(settings.model, settings), harmless(_facts(report))
    catalogue = Catalogue()
    catalogue.record("ci", report)
    catalogue.names |= named(json.dumps(facts))
    with running_adk():
        reviewer = agent(REVIEWER, language_model(settings, meter), settings, "Sums up a report.", ())
        built = app("ci", reviewer, [MemoryPlugin(worklog)], settings)
        with metered(settings.model, worklog, meter):
            return asyncio.run(_converse(built, worklog.session, facts, catalogue))


async def _converse(app: App, session: str, facts: Answer, catalogue: Catalogue) -> str:
    """Ask; what does not hold goes back once, and is then marked as the model's own."""
    message, found = fenced(json.dumps(facts, ensure_ascii=False), "report"), []
    async with conversation(app, session) as ask:
        for _ in range(ATTEMPTS):
            found = check(await ask(message), catalogue)
            if found and not faults(found):
                break
            again = "\n".join(["Write it again; correct only this:", *faults(found)])
            message = again if found else "You wrote nothing."
    if not found:
        raise ServiceError("the model wrote nothing", where=app.name)
    return rendered(found)


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
    shown = {"title", "plan", "step_time", "relative_step_time", "hbm", "faster"}
    proposed = [each.model_dump(mode="json", exclude_none=True, include=shown) for each in one.suggestions]
    return facts | sides | {"proposals": proposed}


def _side(side: Side | None) -> Answer:
    if side is None:
        return {}
    facts = side.model_dump(mode="json", exclude_none=True, exclude={"prediction"})
    if side.prediction is None:
        return facts
    prediction = side.prediction.model_dump(mode="json", exclude_none=True)
    capacity = prediction.pop("hbm_capacity", None)
    return facts | prediction | ({"capacity_bytes": capacity} if capacity else {})
