"""``asap chat``: discuss an analysis."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from asap.cli.shared.options import Overrides, describes_run, experiments, say_usage
from asap.cli.shared.output import warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from io import BufferedReader

    from asap.agents.settings import Settings
    from asap.chat import Conversation
    from asap.chat.chat import Chat
    from asap.chat.session import RunCommand
    from asap.experiments.create import Statement


@describes_run
def chat(
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment ID, a log, configuration, launch script or profile; the chat continues its latest"
            " analysis, or starts one with what is stated here.",
            autocompletion=experiments,
        ),
    ],
    overrides: Overrides = None,
    *,
    stated: "Statement",
    llm: Annotated[
        str | None,
        typer.Option(help="Language model that reads and answers; also ASAP_MODEL. Default: commands, and no model."),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, help="Maximum model calls per turn.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum tokens per turn, input and output.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="Maximum US dollars per turn.")] = None,
    session: Annotated[str | None, typer.Option(help="Session to continue; default: the latest.")] = None,
    command: Annotated[str | None, typer.Option(help="What `try` runs a plan with: ./train.sh {overrides}.")] = None,
    template: Annotated[
        Path | None, typer.Option(help="Your launcher's YAML, JSON or TOML; the command gets a copy as {config}.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run it without asking.")] = False,
) -> None:
    """Discuss an analysis: ask, put facts on record.

    Lines may be piped in: each gets one answer, and only exact commands put facts on record. Exit code 2: a line was
    not understood, or refused.
    """
    from asap.agents.llm.models import check_model
    from asap.agents.settings import read_settings
    from asap.chat import open_conversation
    from asap.experiments import ExperimentStore
    from asap.experiments.create import said_of

    _refuse_questions(experiment, overrides or ())
    how = _run_command(command, template, yes)
    settings = read_settings(model=llm, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    check_model(settings.model)
    with progress() as show:
        show("loading the analysis")
        conversation = open_conversation(
            experiment, ExperimentStore(), settings, session, show, stated=stated, overrides=overrides or ()
        )
    _discuss(conversation, settings, experiment, how, said=said_of(stated, overrides or ()))


def _refuse_questions(target: str, overrides: Sequence[str]) -> None:
    """Raise UsageError for words that are no ``key=value``: they would be taken as a setting, and not be answered."""
    import shlex

    from asap.core.errors import UsageError
    from asap.core.text import plain

    for words in overrides:
        if not Path(words).exists() and (" " in words.partition("=")[0] or "=" not in words):
            piped = plain(f"echo {shlex.quote(words)} | asap chat {shlex.quote(target)}", 200)
            raise UsageError(
                "is no setting, key=value", where=plain(words, 60), hint=f"a question goes in by a pipe: {piped}"
            )


def _discuss(
    conversation: "Conversation", settings: "Settings", target: str, how: "RunCommand | None", said: Sequence[str]
) -> None:
    from asap.chat.chat import Chat

    interactive = sys.stdin.isatty()
    changed = [one for one in conversation.stated if not one.startswith("--") and one not in said]
    if interactive or conversation.evidence or changed:
        for line in conversation.opening(target):
            warn(line)
    origin = "typed" if interactive else "piped"
    run_chat(Chat(conversation, settings, interactive=interactive, run_command=how, origin=origin))


def _run_command(command: str | None, template: Path | None, yes: bool) -> "RunCommand | None":
    from asap.chat.session import RunCommand
    from asap.core.errors import UsageError
    from asap.optimize.evaluators.run.command import Command

    if command is None:
        if yes or template is not None:
            where = "--yes" if yes else "--template"
            raise UsageError("has no effect alone", where=where, hint="give what may be run with --command")
        return None
    return RunCommand(Command(command, config=template).start, agreed=yes, config=template)


def run_chat(chat: "Chat") -> None:
    """Take lines until the input ends. Ctrl-C ends a turn; Ctrl-D or /quit ends the chat."""
    from threading import Thread

    from asap.chat.answering import piped_turns

    interactive = sys.stdin.isatty()
    if interactive:
        _print("? lists the commands.\n")
        Thread(target=chat.prepare, daemon=True).start()  # while the engineer reads and types
    for line in _typed(chat) if interactive else piped_turns(cast("BufferedReader", sys.stdin.buffer)):
        if not line.strip():
            continue
        try:
            _turn(chat, line.strip())
        except KeyboardInterrupt:
            if not interactive:
                raise
            _print("\ninterrupted; the session continues\n")
        if chat.ended:
            break
    if chat.worklog.failed is not None:
        warn(f"the worklog of this chat is incomplete: {chat.worklog.failed}")
        raise typer.Exit(chat.worklog.failed.exit_code)
    say_usage(chat.conversation.session)
    if chat.failure is not None and not interactive:
        raise typer.Exit(chat.failure.exit_code)
    if chat.lost and not interactive:
        raise typer.Exit(2)


def _typed(chat: "Chat") -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from asap.chat.verbs import completer
    from asap.core.files import home, private_file

    path = home() / "chat-history"
    try:
        history = FileHistory(str(private_file(path)))
    except OSError:
        history = InMemoryHistory()
    prompt: PromptSession[str] = PromptSession(
        history=history, completer=completer(chat.conversation), complete_while_typing=False
    )
    while True:
        try:
            yield prompt.prompt("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _turn(chat: "Chat", line: str) -> None:
    """One line and its answer; what is being done is shown until the answer begins."""
    with progress() as show:
        chat.progress = show

        def answer(text: str) -> None:
            show.stop()
            _print(text)

        chat.turn(line, answer)


def _print(text: str) -> None:
    """Print text without control characters and secrets; columns stay aligned."""
    import re

    from asap.core.secrets import redacted
    from asap.core.text import plain

    lines = redacted(text).split("\n")
    shown = ("".join(part if part.isspace() else plain(part) for part in re.split("( +)", line)) for line in lines)
    print("\n".join(shown), end="", flush=True)
