"""One run of the agents on google-adk: from an open study to its proposals, or to a typed failure."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.genai import types
from pydantic import ValidationError

from asap.agents.guardrails.transcript_plugin import TranscriptPlugin
from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.procedure import engine_summary
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import Settings
from asap.agents.workflow.adk_run import LONGEST_REASON, NO_LIMIT, suppress_adk_output
from asap.agents.workflow.app import build_app, prompts
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.nodes import EXPERIMENT, PROPOSALS, summary_of
from asap.agents.workflow.review import Reviewer
from asap.agents.workflow.schemas import AnalysisRequest, Assessment, Judgement
from asap.agents.workflow.sessions import USER, open_sessions
from asap.answers.inquiries import Inquiries
from asap.core.errors import AsapError, ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.proposals import ProposalSet
from asap.proposals.agent_words import AgentWords
from asap.sharding_memory import Kind, Worklog

COORDINATOR = "coordinator"
ANSWERS = {schema.__name__ for schema in (AnalysisRequest, Assessment, Judgement)}


def run_agents(
    studies: Inquiries, experiment: str, settings: Settings, worklog: Worklog, progress: Callable[[str], None]
) -> ProposalSet:
    """Have the agents analyse an experiment; its usage of the model is always logged.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, did not answer in the schema, or reached a limit.
    """
    meter = UsageMeter(settings.model, settings)
    with suppress_adk_output():
        try:
            plugin = MemoryPlugin(worklog, logged_input=_request(experiment))
            app = build_app(studies, settings, plugin, meter, talks=False)
            return asyncio.run(_run(app, worklog.session, experiment, meter.telling(progress)))
        except UsageError:
            raise
        except (AsapError, ValidationError) as error:
            failure = _failure(error)
            if failure is None:
                raise
            hint = (isinstance(error, ServiceError) and error.hint) or f"asap sessions show {worklog.session}"
            raise ServiceError(failure, where=settings.model, hint=hint) from error
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))


async def _run(app: App, session: str, experiment: str, progress: Callable[[str], None]) -> ProposalSet:
    sessions = await open_sessions(app.name, session)
    runner = Runner(app=app, session_service=sessions)
    analysed, proposals, last, words = None, None, None, ""
    try:
        events = runner.run_async(
            user_id=USER,
            session_id=session,
            new_message=types.UserContent(_request(experiment)),
            run_config=RunConfig(max_llm_calls=NO_LIMIT),
        )
        async with aclosing(events):
            async for event in events:
                last, changed = event, event.actions.state_delta
                analysed = changed.get(EXPERIMENT, analysed)
                proposals = changed.get(PROPOSALS, proposals)
                words = _text(event) if event.author == COORDINATOR else words
                for call in event.get_function_calls():
                    progress(f"{event.author}: {call.name}")
    finally:
        await runner.close()
    if proposals is None:
        raise ServiceError(f"the model returned no proposals: {_last_response(last)}", where=session)
    if analysed != experiment:
        raise ServiceError(f"the model analysed {analysed} instead of {experiment}", where=session)
    found = ProposalSet.model_validate(proposals)
    return _with_summary(app, session, found, words)


def _with_summary(app: App, session: str, proposals: ProposalSet, words: str) -> ProposalSet:
    """The proposals with the coordinator's summary, less what does not resolve, unless it repeats the engine."""
    if words == engine_summary(summary_of(proposals)):
        return proposals
    plugin = next(plugin for plugin in app.plugins if isinstance(plugin, TranscriptPlugin))
    transcript = plugin.transcript(session)
    transcript.record("engine", {"statement": proposals.recommendation.statement})
    summary = Reviewer(transcript, prompts()).verified(words)
    agents = proposals.agents or AgentWords()
    return proposals.model_copy(update={"agents": agents.model_copy(update={"summary": summary or None})})


def _request(experiment: str) -> str:
    return f"analyze {experiment}"


def _failure(error: AsapError | ValidationError) -> str | None:
    """The failure of a model, in words; ``None`` if the error is a bug of ours."""
    if isinstance(error, ServiceError):
        return error.message
    if isinstance(error, AsapError):
        return f"the model made an invalid request: {error}"
    if error.title in ANSWERS:
        return f"the model's answer does not match the schema: {plain(redacted(str(error)), LONGEST_REASON)}"
    return None


def _text(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or ()
    return "".join(part.text for part in parts if part.text and not part.thought)


def _last_response(event: Event | None) -> str:
    if event is None:
        return "its answer was empty"
    if event.error_code:
        return plain(f"{event.error_code} {event.error_message or ''}", LONGEST_REASON)
    parts = (event.content.parts if event.content else None) or ()
    return plain(redacted(" ".join(part.text for part in parts if part.text)), LONGEST_REASON) or "its answer was empty"
