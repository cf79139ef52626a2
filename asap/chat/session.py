"""The state of a chat: its conversation, its worklog, its model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asap.agents.settings import Settings
from asap.chat.conversation import Conversation
from asap.core.errors import AsapError
from asap.evidence.fact import Origin
from asap.plans import Plan
from asap.sharding_memory import Worklog

Show = Callable[[str], None]


@dataclass(frozen=True)
class RunCommand:
    """How the chat may run a configuration.

    Args:
        command: of the user, with ``{overrides}`` or ``{config}``.
        agreed: whether its cost was agreed to when the chat was started.
        folder: that it runs in.
        config: the file of which ``{config}`` is a copy.
    """

    command: str
    agreed: bool = False
    folder: Path = Path()
    config: Path | None = None


class ChatSession:
    """A conversation with its worklog and its model.

    Args:
        conversation: from :func:`asap.chat.open_conversation`.
        settings: with the language model, and its limits for one turn.
        progress: called with what is being done where that takes long.
        interactive: whether somebody can agree to the cost of a run.
        run_command: how configurations may be run; without it they are compiled.
        origin: where the lines come from.

    ``lost`` says that a line was not understood, or refused.
    """

    def __init__(
        self,
        conversation: Conversation,
        settings: Settings | None = None,
        progress: Show = lambda stage: None,
        *,
        interactive: bool = False,
        run_command: RunCommand | None = None,
        origin: Origin = "typed",
    ):
        self.conversation = conversation
        self.progress = progress
        self.worklog = Worklog(conversation.session)
        self.settings = settings or Settings()
        self.failure: AsapError | None = None
        self.ended = False
        self.lost = False
        self.interactive = interactive
        self.run_command = run_command
        self.offered_run: Plan | None = None
        self.origin: Origin = origin

    @property
    def model(self) -> str:
        """Name of the language model."""
        return self.settings.model
