"""One run of the agents on google-adk: from an open study to its proposals, or to a typed failure."""

import asyncio
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.genai import types
from pydantic import ValidationError

from asap.agents.desk import Desk
from asap.agents.memory_plugin import MemoryPlugin
from asap.agents.meter import Meter
from asap.agents.nodes import EXPERIMENT, PROPOSALS
from asap.agents.schemas import AnalysisRequest, Assessment, Judgement
from asap.agents.sessions import USER, open_sessions
from asap.agents.settings import Settings
from asap.agents.team import build_app
from asap.agents.usage import usage_entry
from asap.core.errors import AsapError, ServiceError, UsageError
from asap.core.text import plain, redact
from asap.proposals import ProposalSet
from asap.sharding_memory import Kind, Worklog, redacted

LONGEST_REASON = 300
NO_LIMIT = 1_000_000
"""google-adk's own limit of calls is out of reach: the meter holds all limits."""

ANSWERS = {schema.__name__ for schema in (AnalysisRequest, Assessment, Judgement)}
NOWHERE = logging.NullHandler()


def run_agents(
    desk: Desk, experiment: str, settings: Settings, worklog: Worklog, progress: Callable[[str], None]
) -> ProposalSet:
    """Have the agents analyse an experiment of the desk; what they used of the model is logged in any case.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
        ServiceError: the model failed, did not answer as it was asked, or reached a limit.
    """
    meter = Meter(settings.model, settings)
    with quiet():
        try:
            app = build_app(desk, settings.model, MemoryPlugin(worklog, heard=_request(experiment)), meter)
            return asyncio.run(_run(app, worklog.session, experiment, progress))
        except UsageError:
            raise
        except (AsapError, ValidationError) as error:
            failure = _failure(error)
            if failure is None:
                raise
            hint = (isinstance(error, ServiceError) and error.hint) or f"asap memory show {worklog.session}"
            raise ServiceError(failure, where=settings.model, hint=hint) from error
        finally:
            worklog.append(Kind.NOTE, usage_entry(meter.usage))


async def _run(app: App, session: str, experiment: str, progress: Callable[[str], None]) -> ProposalSet:
    sessions = await open_sessions(app.name, session)
    runner = Runner(app=app, session_service=sessions)
    analysed, proposals, last = None, None, None
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
                for call in event.get_function_calls():
                    progress(f"{event.author}: {call.name}")
    finally:
        await runner.close()
    if proposals is None:
        raise ServiceError(f"the model ended without proposals: {_last_words(last)}", where=session)
    if analysed != experiment:
        raise ServiceError(f"the model analysed {analysed} instead of {experiment}", where=session)
    return ProposalSet.model_validate(proposals)


def _request(experiment: str) -> str:
    return f"analyze {experiment}"


def _failure(error: AsapError | ValidationError) -> str | None:
    """What to say of a model that failed or asked for nonsense; ``None`` if the fault is ours."""
    if isinstance(error, ServiceError):
        return error.message
    if isinstance(error, AsapError):
        return f"the model asked for what cannot be done: {error}"
    if error.title in ANSWERS:
        return f"the model did not answer as it was asked: {plain(redacted(str(error)), LONGEST_REASON)}"
    return None


def _last_words(event: Event | None) -> str:
    if event is None:
        return "it said nothing"
    if event.error_code:
        return plain(f"{event.error_code} {event.error_message or ''}", LONGEST_REASON)
    parts = (event.content.parts if event.content else None) or ()
    return plain(redact(" ".join(part.text for part in parts if part.text)), LONGEST_REASON) or "it said nothing"


@contextmanager
def one_failure(model: str) -> Iterator[None]:
    """Whatever a model fails with is one ``ServiceError``; errors of ASAP, wrapped by google-adk or not, stay."""
    try:
        yield
    except AsapError:
        raise
    except Exception as error:
        if isinstance(error.__cause__, AsapError):
            raise error.__cause__ from error
        reason = plain(redacted(f"{type(error).__name__}: {error}"), LONGEST_REASON)
        raise ServiceError(f"the model failed: {reason}", where=model) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep google-adk's log lines and its notices of experimental features off the terminal."""
    for name in ("google_adk", "google_genai", "LiteLLM"):
        logger = logging.getLogger(name)
        logger.addHandler(NOWHERE)
        logger.propagate = False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]")
        yield
