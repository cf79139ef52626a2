"""A chat: takes a line, logs every turn, and can be interrupted anywhere."""

from contextlib import suppress

from asap.agents.settings import BUILTIN
from asap.chat.answering import Reply
from asap.chat.classifier import classifier
from asap.chat.facts import ModelTools
from asap.chat.language import SESSION, Command, nearest, parse
from asap.chat.restore import REPLY, restore
from asap.chat.router import OFFERED, USUAL, route
from asap.chat.session import ChatSession, Show
from asap.chat.session_commands import SESSION_COMMANDS, verify_or_ask
from asap.chat.slots import LONGEST
from asap.chat.verbs import FACTS, USAGE, unknown
from asap.chat.written import written
from asap.core.errors import AsapError, PlanError, ServiceError, UsageError
from asap.core.text import plain
from asap.evidence.fact import EVIDENCE, RETRACTION
from asap.sharding_memory import INTERRUPTED, Kind

MORE = "A language model would understand more: `asap chat EXPERIMENT --llm NAME`. ? lists the commands."
NOTHING = "nothing understood"
GREETING = "Ask what you like about the run; ? lists the commands."
REMARKS = {
    "record": "Nothing was put on record: facts are typed as commands, such as ran 1 = 4.1s.",
    "retract": "Nothing was taken off the record: forget NUMBER does that.",
    "outside": "As far as the words tell, that is nothing an analysis of a run answers.",
    "opinion": "Only facts change the order of the proposals: it stays as it is.",
}
"""What is said of words that seem to state, take back or claim something."""
ENDS = ("quit", "exit", "q")
"""Lines that end a chat with a model, too."""


class Chat(ChatSession):
    """Takes the lines of an engineer, one turn each."""

    def prepare(self) -> None:
        """Read what every answer needs, beside the first lines: the grammar, the examples, and the proposals."""
        parse("why")
        classifier()
        _ = self.conversation.inquiry.without_facts().proposed

    def turn(self, text: str, show: Show) -> Reply | None:
        """Take one line; what is answered goes to ``show``, piece by piece.

        Returns:
            The answer; ``None`` for a command that gives none.
        """
        origin = {"origin": self.origin} if self.origin != "typed" else {}
        self.worklog.append(Kind.USER_INPUT, {"text": text, "model": self.model, **origin})
        self.conversation.inquiry.origin = self.origin
        try:
            found = self._answer(text, show)
        except KeyboardInterrupt:
            self.worklog.append(Kind.NOTE, {"event": INTERRUPTED})
            self.conversation = restore(self.conversation.session, self.conversation.store)
            raise
        if found is not None:
            self.lost |= found.refused
            kept = found.model_copy(update={"text": "The session, up to here."}) if found.on_record else found
            output = kept.model_dump(mode="json", exclude_none=True)
            self.worklog.append(Kind.RESULT, {"node": REPLY, "output": output})
        return found

    def _answer(self, text: str, show: Show) -> Reply | None:
        if self.model != BUILTIN and not self._is_command(text):
            return self._ask_model(text, show)
        reply = self._of_engine(text)
        if reply is not None:
            show(f"{reply.text}\n")
        return reply

    def _is_command(self, text: str) -> bool:
        """Whether a line is read exactly although there is a model: a fact, or the number of what was offered."""
        if text.isdecimal():
            return 0 < int(text) <= len(self.conversation.offered)
        with suppress(UsageError):
            if (command := parse(text)) is not None and command.name in FACTS:
                return True
        return text.startswith("/") or text.lower() in ENDS

    def _of_engine(self, text: str) -> Reply | None:
        """The exact language, or free words; what fails is one line."""
        try:
            command = self._chosen(text) or parse(text.removeprefix("/"))
            if command is None or command.name != "try":
                self.offered_run = None
            if command is not None and command.name == "quit":
                self.ended = True
                return None
            if command is None and text.startswith("/"):
                self.lost = True
                raise unknown(text)
            return self._run(command, None) if command is not None else self._free(text)
        except AsapError as error:
            return self._with_ranking(Reply(topic="error", text=f"! {plain(error)}", refused=True))

    def _chosen(self, text: str) -> Command | None:
        """A number picks one of the commands that were offered."""
        offered, self.conversation.offered = self.conversation.offered, ()
        word = text.strip().rstrip(".")
        found = offered[int(word) - 1] if word.isdigit() and 0 < int(word) <= len(offered) else None
        if found is not None and found.name in FACTS and self.origin == "piped":
            raise UsageError(f"a pipe confirms nothing: a fact is a line of its own, `{written(found)}`")
        return found

    def _run(self, command: Command, understood: str | None) -> Reply:
        """A command, on record like the call of any tool, with what it put on record."""
        if command.name in SESSION:
            done = self._with_ranking(SESSION_COMMANDS[command.name](self, command))
            self._record(done)
            return done
        call = {"agent": "chat", "tool": command.name}
        self.worklog.append(Kind.TOOL_CALL, call | {"arguments": dict(command.arguments)})
        try:
            reply = verify_or_ask(self, command)
        except AsapError as error:
            reply = self._with_ranking(Reply(topic=command.name, text=f"! {plain(error)}", refused=True))
        if understood is not None:
            reply = reply.model_copy(update={"text": f"› {understood}\n{reply.text}", "understood": understood})
        self.worklog.append(Kind.TOOL_RESULT, call | {"result": reply.model_dump(mode="json", exclude_none=True)})
        self._record(reply)
        return reply

    def _free(self, text: str) -> Reply:
        """Free words: the query that they ask, or three to choose from. They put nothing on record."""
        try:
            found = route(text[:LONGEST], self.conversation.inquiry)
        except PlanError as error:
            return self._with_ranking(Reply(topic="plan", text=f"! {plain(error)}", refused=True))
        more = "" if self.conversation.hinted else f"\n{MORE}"
        self.conversation.hinted = True
        first, _, rest = text.partition(" ")
        verb = nearest(first, USAGE) if len(text.split()) <= _FEW else None
        meant = parse(f"{verb} {rest}") if verb else None
        sure = found.command is not None and meant in (None, found.command)
        if found.about == "greeting" and sure:
            return self._with_ranking(Reply(topic="greeting", text=f"{GREETING}{more}"))
        remark = f"\n{REMARKS[found.about]}" if found.about in REMARKS else ""
        if found.command is not None and sure:
            reply = self._run(found.command, written(found.command))
            return reply.model_copy(update={"text": f"{reply.text}{remark}{more}"})
        self.lost = True
        offered = found.offered or tuple(Command(name) for name in USUAL)
        if meant is not None:
            offered = (meant, *(one for one in offered if one != meant))[:OFFERED]
        said = f"no such command; did you mean {verb}?" if verb else "I do not understand that for sure."
        self.conversation.offered = offered
        lines = [f"{said} Say a number:", *(f"  {n}. {written(one)}" for n, one in enumerate(offered, 1))]
        reply = Reply(topic=NOTHING, text="\n".join(lines) + remark + more, offered=tuple(map(written, offered)))
        return self._with_ranking(reply)

    def _ask_model(self, text: str, show: Show) -> Reply:
        """The model reads and answers, with the queries as its tools."""
        from asap.agents.grounding.catalogue import Catalogues
        from asap.agents.workflow.conversation_turn import ask_model

        conversation = self.conversation
        before, facts = conversation.order, conversation.evidence
        conversation.offered = ()

        def note(reply: Reply) -> None:
            self._record(reply)
            show(f"{reply.text}\n")

        catalogues = Catalogues()
        tools = ModelTools(conversation, text, note, catalogues).tools
        about = conversation.inquiry, catalogues
        try:
            words = ask_model(self.settings, *about, self.worklog, text, show, tools, self.progress)
        except ServiceError as error:
            self.failure = error
            self.worklog.append(Kind.ERROR, {"where": "chat", "type": type(error).__name__, "message": str(error)})
            show(f"! {error}. Without the model:\n")
            reply = self._of_engine(text)
            assert reply is not None
            show(f"{reply.text}\n")
            return reply
        now = conversation.evidence
        return self._with_ranking(
            Reply(
                topic="model", text=words, changed=before != conversation.order,
                evidence=tuple(one for one in now if one not in facts),
                retracted=tuple(one for one in facts if one not in now),
            )
        )  # fmt: skip

    def _with_ranking(self, reply: Reply) -> Reply:
        return reply if reply.ranking else reply.model_copy(update={"ranking": self.conversation.ranking})

    def _record(self, reply: Reply) -> None:
        for item in reply.retracted:
            self.worklog.append(Kind.NOTE, {"event": RETRACTION, "fact": item.model_dump(mode="json")})
        for item in reply.evidence:
            self.worklog.append(Kind.NOTE, {"event": EVIDENCE, "evidence": item.model_dump(mode="json")})


_FEW = 3
"""Words of a line that may be a misspelt command."""
