"""``asap chat``: argue with the engine about an analysis."""

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.output import progress, warn

if TYPE_CHECKING:
    from asap.agents.chat.turns import Chat


def chat(
    experiment: Annotated[str, typer.Argument(help="An experiment ID; its latest analysis is taken up.")],
    model: Annotated[
        str | None,
        typer.Option(help="The language model that words the answers, also ASAP_MODEL; builtin/planner by default."),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, help="Calls of the model in a turn, at most.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in and out in a turn, at most.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="US dollars in a turn, at most.")] = None,
    session: Annotated[str | None, typer.Option(help="Another session than the latest of the experiment.")] = None,
) -> None:
    """Talk about an analysis: ask, doubt, state facts. Lines may be piped in."""
    from asap.agents.chat import open_conversation
    from asap.agents.chat.turns import Chat
    from asap.agents.preflight import check_model
    from asap.agents.settings import read_settings
    from asap.experiments import ExperimentStore

    settings = read_settings(model=model, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    check_model(settings.model)
    with progress() as show:
        show("taking up the analysis")
        conversation = open_conversation(experiment, ExperimentStore(), settings.model, session, show)
    talk(Chat(conversation, settings, _stage))


def talk(chat: "Chat") -> None:
    """Turn by turn until the lines end. Ctrl-C ends a turn, Ctrl-D or /quit the chat."""
    gc.enable()
    interactive = sys.stdin.isatty()
    if interactive:
        _print(f"{chat.conversation.id}, session {chat.conversation.session}. /help says what can be asked.\n")
    for line in _typed() if interactive else sys.stdin:
        if not line.strip():
            continue
        try:
            chat.turn(line.strip(), _print)
        except KeyboardInterrupt:
            if not interactive:
                raise
            _print("\ninterrupted; the session goes on\n")
        if chat.ended:
            break
    if chat.worklog.failed is not None:
        warn(f"the worklog of this chat is not whole: {chat.worklog.failed}")
        raise typer.Exit(chat.worklog.failed.exit_code)
    if chat.failure is not None and not interactive:
        raise typer.Exit(chat.failure.exit_code)


def _typed() -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from asap.core.files import home

    path = home() / "chat-history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        history = FileHistory(str(path))
    except OSError:
        history = InMemoryHistory()
    prompt: PromptSession[str] = PromptSession(history=history)
    while True:
        try:
            yield prompt.prompt("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _stage(stage: str) -> None:
    if sys.stderr.isatty():
        warn(f"{stage} …")


def _print(text: str) -> None:
    """Show text without what could harm a terminal; columns stay aligned."""
    import re

    from asap.core.text import plain, redact

    lines = redact(text).split("\n")
    shown = ("".join(part if part.isspace() else plain(part) for part in re.split("( +)", line)) for line in lines)
    print("\n".join(shown), end="", flush=True)
