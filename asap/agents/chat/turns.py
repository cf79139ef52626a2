"""A chat from outside: one object that takes messages and commands, logs every turn, and can be stopped anywhere."""

from collections.abc import Callable

from asap.agents.chat.commands import command
from asap.agents.chat.conversation import EVIDENCE, REPLY, Conversation, restore
from asap.agents.chat.reply import Reply
from asap.agents.chat.replying import reply
from asap.agents.models import BUILTIN
from asap.agents.settings import Settings
from asap.core.errors import ServiceError
from asap.sharding_memory import Kind, Worklog

Show = Callable[[str], None]
ENGINE = "engine"


class Chat:
    """A conversation with its worklog and its model.

    Args:
        conversation: from :func:`asap.agents.chat.open_conversation`.
        settings: with the language model that words the answers, and its limits for one turn.
        progress: told what is being done where that takes long.
    """

    def __init__(
        self, conversation: Conversation, settings: Settings | None = None, progress: Show = lambda stage: None
    ):
        self.conversation = conversation
        self.progress = progress
        self.worklog = Worklog(conversation.session)
        self.settings = settings or Settings()
        self.failure: ServiceError | None = None
        self.ended = False

    @property
    def model(self) -> str:
        """Name of the language model."""
        return self.settings.model

    def turn(self, text: str, show: Show) -> Reply | None:
        """Take one line of the engineer; what is answered goes to ``show``, piece by piece.

        Returns:
            The answer; ``None`` for a command that gives none.
        """
        self.worklog.append(Kind.USER_INPUT, {"text": text, "model": self.model})
        try:
            answer = command(self, text) if text.lstrip().startswith("/") else self._say(text, show)
            if answer is not None and text.lstrip().startswith("/"):
                self._record(answer)
                show(f"{answer.text}\n")
        except KeyboardInterrupt:
            self.worklog.append(Kind.NOTE, {"event": "interrupted"})
            self.conversation = restore(self.conversation.session, self.conversation.store)
            raise
        if answer is not None:
            output = answer.model_dump(mode="json", exclude_none=True)
            self.worklog.append(Kind.RESULT, {"node": REPLY, "output": output})
        return answer

    def _say(self, text: str, show: Show) -> Reply:
        answer = self._ask_engine(text)
        if self.model == BUILTIN:
            show(f"{answer.text}\n")
            return answer
        from asap.agents.chat.talk import ask_model

        if answer.evidence:
            show(f"{answer.text}\n")
        try:
            said = ask_model(self.settings, self.conversation.desk(), self.worklog, text, answer, show)
        except ServiceError as error:
            self.failure = error
            self.worklog.append(Kind.ERROR, {"where": "chat", "type": type(error).__name__, "message": str(error)})
            show(f"! {error}. The engine's own answer:\n{answer.text}\n")
            return answer
        return answer.model_copy(update={"text": said})

    def _ask_engine(self, text: str) -> Reply:
        """The engine's answer, on record like that of any tool, with the evidence that it took in."""
        call = {"agent": "chat", "tool": ENGINE}
        self.worklog.append(Kind.TOOL_CALL, call | {"arguments": {"message": text}})
        answer = reply(self.conversation, text)
        self.worklog.append(Kind.TOOL_RESULT, call | {"result": answer.model_dump(mode="json", exclude_none=True)})
        self._record(answer)
        return answer

    def _record(self, answer: Reply) -> None:
        for item in answer.evidence:
            self.worklog.append(Kind.NOTE, {"event": EVIDENCE, "evidence": item.model_dump(mode="json")})
