"""The state of a chat: its conversation, its worklog, its model."""

from collections.abc import Callable

from asap.agents.settings import Settings
from asap.chat.conversation import Conversation
from asap.chat.tries import RunCommand
from asap.core.errors import ServiceError
from asap.plans import Plan
from asap.sharding_memory import Worklog

Show = Callable[[str], None]


class ChatSession:
    """A conversation with its worklog and its model.

    Args:
        conversation: from :func:`asap.chat.open_conversation`.
        settings: with the language model that words the answers, and its limits for one turn.
        progress: called with what is being done where that takes long.
        interactive: whether somebody can answer a question about an uncertain fact.
        run_command: how configurations may be run; without it they are compiled.
    """

    def __init__(
        self,
        conversation: Conversation,
        settings: Settings | None = None,
        progress: Show = lambda stage: None,
        *,
        interactive: bool = False,
        run_command: RunCommand | None = None,
    ):
        self.conversation = conversation
        self.progress = progress
        self.worklog = Worklog(conversation.session)
        self.settings = settings or Settings()
        self.failure: ServiceError | None = None
        self.ended = False
        self.interactive = interactive
        self.run_command = run_command
        self.offered: Plan | None = None

    @property
    def model(self) -> str:
        """Name of the language model."""
        return self.settings.model
