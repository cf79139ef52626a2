"""Where ``adk run asap/adk`` and ``adk web asap/adk`` look for the agent: analyses, and the chat over them.

With ``--in_memory`` and ``--no_use_local_storage`` google-adk writes nothing into the package.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

from pydantic import Field

from asap.agents.settings import Settings, read_settings
from asap.agents.tools.toolbox import Answer, answering
from asap.agents.workflow.adk_run import AdkContext, session_of
from asap.agents.workflow.analyze import analyze
from asap.agents.workflow.app import build_app
from asap.answers.inquiries import Inquiries
from asap.chat.chat import Chat
from asap.chat.restore import restore
from asap.experiments import ExperimentStore

LONGEST = 4000


class Discussion:
    """One chat for each experiment that a session of google-adk speaks of: it knows no facts of another session."""

    def __init__(self, store: ExperimentStore, settings: Settings | None = None):
        self._store, self._settings = store, settings
        self._chats: dict[tuple[str, str], Chat] = {}

    @answering
    def discuss(
        self,
        experiment: str,
        message: Annotated[str, Field(min_length=1, max_length=LONGEST)],
        tool_context: AdkContext,
    ) -> Answer:
        """Answer a question about an analysed run, or take a fact about it, as `asap chat` does.

        Facts that it takes change the order of the proposals in the following answers; each answer says so.

        Args:
            experiment: ID of the experiment that was analysed.
            message: the engineer's own words, letter by letter.
        """
        self._store.get(experiment)
        with ThreadPoolExecutor(max_workers=1) as apart:  # an analysis runs an event loop of its own
            return {"lines": apart.submit(self._turn, (session_of(tool_context), experiment), message).result()}

    def _turn(self, opened: tuple[str, str], message: str) -> list[str]:
        if opened not in self._chats:
            session = analyze(opened[1], store=self._store).analysis.session
            self._chats[opened] = Chat(restore(session, self._store), self._settings, origin="tool")
        reply = self._chats[opened].turn(message, lambda piece: None)
        return reply.text.splitlines() if reply else ["The chat has ended."]


_store = ExperimentStore()
app = build_app(Inquiries(_store), read_settings(), (Discussion(_store, read_settings()).discuss,), name="adk")
root_agent = app.root_agent
