"""One run of the agents on google-adk: from an open study to its proposals; where a model fails, to what there is."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner
from google.genai import types
from pydantic import ValidationError

from asap.agents.llm.budget import UsageMeter
from asap.agents.llm.planner import ANSWER
from asap.agents.llm.usage import usage_entry
from asap.agents.settings import BUILTIN, Settings
from asap.agents.workflow.adk_run import LONGEST_REASON, NO_LIMIT, USER, open_sessions, running_adk
from asap.agents.workflow.app import Analysis, build_analysis
from asap.agents.workflow.memory_plugin import MemoryPlugin
from asap.agents.workflow.nodes import PROPOSALS
from asap.agents.workflow.protocol import AnalysisRequest
from asap.answers.inquiries import Inquiries
from asap.core.errors import AsapError, InterruptedRunError, ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.proposals import ProposalSet
from asap.sharding_memory import INTERRUPTED, Kind, Worklog


def run_agents(
    studies: Inquiries, experiment: str, settings: Settings, worklog: Worklog, progress: Callable[[str], None]
) -> tuple[ProposalSet, ServiceError | None]:
    """Have the agents analyse an experiment; its usage of the model is always logged.

    Returns:
        The proposals, and the failure that ended the run early: then they hold what the agents had finished.

    Raises:
        UsageError: no such model is known, or its cost cannot be limited.
    """
    meter = UsageMeter(settings.model, settings)
    with running_adk():
        request = AnalysisRequest(experiment=experiment).model_dump_json()
        built = build_analysis(studies, settings, MemoryPlugin(worklog, logged_input=request), meter)
        built.nodes.start(experiment)
        try:
            try:
                return asyncio.run(_run(built, worklog.session, request, settings, meter.telling(progress))), None
            finally:
                worklog.append(Kind.NOTE, usage_entry(meter.usage))
        except UsageError:
            raise
        except KeyboardInterrupt:
            worklog.append(Kind.NOTE, {"event": INTERRUPTED})
            progress("interrupted: what there is")
            hint = f"asap sessions show {worklog.session}"
            return built.nodes.proposals(), InterruptedRunError(INTERRUPTED, where=settings.model, hint=hint)
        except (AsapError, ValidationError) as error:
            hint = (isinstance(error, ServiceError) and error.hint) or f"asap sessions show {worklog.session}"
            failure = ServiceError(_reason(error), where=settings.model, hint=hint)
            worklog.append(Kind.ERROR, {"where": "analysis", "type": type(error).__name__, "message": str(failure)})
            return built.nodes.proposals(), failure


async def _run(
    built: Analysis, session: str, request: str, settings: Settings, progress: Callable[[str], None]
) -> ProposalSet:
    runner = Runner(app=built.app, session_service=await open_sessions(built.app.name, session))
    proposals, failed = None, None
    streaming = {} if settings.model == BUILTIN else {"streaming_mode": "sse"}
    try:
        events = runner.run_async(
            user_id=USER,
            session_id=session,
            new_message=types.UserContent(request),
            run_config=RunConfig.model_validate({"max_llm_calls": NO_LIMIT, **streaming}),
        )
        async with aclosing(events):
            async for event in events:
                proposals = event.actions.state_delta.get(PROPOSALS, proposals)
                failed = event if event.error_code else failed
                for call in event.get_function_calls() if not event.partial else ():
                    progress(f"{event.author}: {'answers' if call.name == ANSWER else call.name}")
    finally:
        await runner.close()
    if proposals is None:
        said = plain(f"{failed.error_code} {failed.error_message or ''}", LONGEST_REASON) if failed else "nothing"
        raise ServiceError(f"the model returned no proposals: {said}", where=session)
    return ProposalSet.model_validate(proposals)


def _reason(error: AsapError | ValidationError) -> str:
    if isinstance(error, ServiceError):
        return error.message
    return plain(redacted(f"the model's answer cannot be used: {error}"), LONGEST_REASON)
