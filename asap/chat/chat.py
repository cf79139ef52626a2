"""A chat: takes messages and commands, logs every turn, and can be interrupted anywhere."""

from asap.agents.settings import BUILTIN
from asap.chat.answer_message import answer_message
from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.less_recomputation import less_recomputation
from asap.chat.commands import run_command
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.restore import REPLY, restore
from asap.chat.session import ChatSession, Show
from asap.chat.testimony.tools import Testimony, with_testimony
from asap.chat.tries import doubted, offer, wanted
from asap.chat.understanding.message import Command, Message, read_message
from asap.chat.understanding.topics.topics import Topic
from asap.core.errors import ServiceError
from asap.evidence.record import EVIDENCE, RETRACTION
from asap.sharding_memory import INTERRUPTED, Kind

ENGINE = "engine"


class Chat(ChatSession):
    """Takes the lines of an engineer, one turn each."""

    def turn(self, text: str, show: Show) -> Reply | None:
        """Take one line of the engineer; what is answered goes to ``show``, piece by piece.

        Returns:
            The answer; ``None`` for a command that gives none.
        """
        self.worklog.append(Kind.USER_INPUT, {"text": text, "model": self.model})
        try:
            message = self._read(text)
            answer = self._say(text, message, show) if message.command is None else self._run(message.command, show)
        except KeyboardInterrupt:
            self.worklog.append(Kind.NOTE, {"event": INTERRUPTED})
            self.conversation = restore(self.conversation.session, self.conversation.store)
            raise
        if answer is not None:
            kept = answer.model_copy(update={"text": "The session, up to here."}) if answer.on_record else answer
            output = kept.model_dump(mode="json", exclude_none=True)
            self.worklog.append(Kind.RESULT, {"node": REPLY, "output": output})
        return answer

    def _read(self, text: str) -> Message:
        """The line; where plans may be run, a wish to try one, or consent to its cost, is the command for it."""
        offered, self.offered = self.offered, None
        message = read_message(text, self.conversation.scene)
        if message.agrees and offered is not None:
            self.offered = offered
            return Message(text, text, command=Command("try", str(offered)))
        what = wanted(text) if self.run_command is not None else None
        return message if what is None else Message(text, text, command=Command("try", what))

    def _run(self, command: Command, show: Show) -> Reply | None:
        answer = run_command(self, command)
        if answer is not None:
            self._record(answer)
            show(f"{answer.text}\n")
        return answer

    def _say(self, text: str, message: Message, show: Show) -> Reply:
        answer = self._ask_engine(text, message)
        if self.model == BUILTIN:
            show(f"{answer.text}\n")
            return answer
        if answer.evidence or answer.retracted:
            show(f"{answer.text}\n")
        try:
            return self._ask_model(text, message, answer, show)
        except ServiceError as error:
            self.failure = error
            self.worklog.append(Kind.ERROR, {"where": "chat", "type": type(error).__name__, "message": str(error)})
            show(f"! {error}. The engine's own answer:\n{answer.text}\n")
            return answer

    def _ask_model(self, text: str, message: Message, answer: Reply, show: Show) -> Reply:
        """The model's words for the engine's answer, with the facts that it put on record meanwhile."""
        from asap.agents.workflow.conversation_turn import EngineAnswer, ask_model

        def note(found: ReplyBuilder) -> None:
            nonlocal answer
            self._record(found)
            show(f"{found.text}\n")
            answer = with_testimony(self.conversation, answer, found)

        facts = tuple(answer.model_dump(mode="json")["facts"])
        engine = EngineAnswer(answer.text, facts, quotable=not message.pretends)
        studies = self.conversation.studies()
        testimony = Testimony(self.conversation, message, studies, note, interactive=self.interactive)
        words = ask_model(self.settings, studies, self.worklog, text, engine, show, testimony.tools, self.progress)
        return answer.model_copy(update={"text": words})

    def _ask_engine(self, text: str, message: Message) -> Reply:
        """The engine's answer, on record like that of any tool, with the evidence that it took in."""
        call = {"agent": "chat", "tool": ENGINE}
        self.worklog.append(Kind.TOOL_CALL, call | {"arguments": {"message": text}})
        answer = answer_message(self.conversation, message, interactive=self.interactive)
        if doubted(text) or wanted(text) is not None:
            answer = self._doubted(text, answer)
        self.worklog.append(Kind.TOOL_RESULT, call | {"result": answer.model_dump(mode="json", exclude_none=True)})
        self._record(answer)
        return answer

    def _doubted(self, text: str, answer: Reply) -> Reply:
        """The answer to a doubt, or to a wish to try what cannot be run here, with what would settle it."""
        lighter = less_recomputation(self.conversation, text)
        if lighter is not None:
            self.conversation.focus = lighter.plan
            answer = answer.model_copy(
                update={"text": f"{lighter.plan}: {figures_of(lighter)}", "topic": Topic.WHAT_IF, "focus": lighter.plan}
            )
        offered = offer(self.conversation, self.run_command)
        return answer.model_copy(update={"text": f"{answer.text}\n{offered}"}) if offered else answer

    def _record(self, answer: Reply | ReplyBuilder) -> None:
        for item in answer.retracted:
            self.worklog.append(Kind.NOTE, {"event": RETRACTION, "fact": item.model_dump(mode="json")})
        for item in answer.evidence:
            self.worklog.append(Kind.NOTE, {"event": EVIDENCE, "evidence": item.model_dump(mode="json")})
