"""The commands and their groups."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from asap.cli.analysis import analyze, chat, report
from asap.cli.examples import examples
from asap.cli.plans import map as mapping
from asap.cli.plans import optimize, predict, verify
from asap.cli.scores import accuracy, llm
from asap.cli.services import ci, mcp, sessions
from asap.cli.setup import setup
from asap.cli.shared import output
from asap.cli.sources import experiments, history, knowledge, profile, resolve, trace

UNDERSTAND, DECIDE, TRY, SHARE, SET_UP, MORE = (
    "Understand a run",
    "Decide",
    "Verify and try",
    "Share",
    "Set up",
    "More",
)
START = """\
asap analyze llama-8b-tensor-16               a bundled run: its bottleneck, and up to three proposals
asap analyze train.log --hardware h100-64     a run of yours: log, configuration, launch script or profile
asap --help                                   everything else
"""


class Groups(TyperGroup):
    """Lists commands under headings, in the order in which they are added, before its own options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write commands, then options."""
        self.format_commands(ctx, formatter)
        TyperCommand.format_options(self, ctx, formatter)  # pyright: ignore[reportArgumentType]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section a heading."""
        widest = max(map(len, self.commands))
        for heading, names in self.panels().items():
            rows = [
                (name.ljust(widest), self.commands[name].get_short_help_str(formatter.width - 6 - widest))
                for name in names
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def panels(self) -> dict[str, list[str]]:
        """Names of commands by heading."""
        found: dict[str, list[str]] = {heading: [] for heading in (UNDERSTAND, DECIDE, TRY, SHARE, SET_UP, MORE)}
        for name, command in self.commands.items():
            found[getattr(command, "rich_help_panel", MORE)].append(name)
        return found


def epilog(command: str) -> str:
    """What to type, at the end of a command's help."""
    return "\b\n" + "\n".join(examples(command))


app = typer.Typer(
    name="asap",
    cls=Groups,
    help="Find what limits the step of an LLM training run, and propose faster configurations.",
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode=None,
)
scores = typer.Typer(no_args_is_help=True, help="Score predictions, and narrow them by your own runs.")
scores.command("ledger")(accuracy.ledger)
scores.command("backtest")(accuracy.backtest)
scores.command("calibrate")(accuracy.calibrate)

app.command("analyze", epilog=epilog("analyze"), rich_help_panel=UNDERSTAND)(analyze.analyze)
app.command("resolve", epilog=epilog("resolve"), rich_help_panel=UNDERSTAND)(resolve.resolve)
app.add_typer(profile.app, name="profile", epilog=epilog("profile"), rich_help_panel=UNDERSTAND)
app.add_typer(trace.app, name="trace", epilog=epilog("trace"), rich_help_panel=UNDERSTAND)
app.command("chat", epilog=epilog("chat"), rich_help_panel=DECIDE)(chat.chat)
app.command("predict", epilog=epilog("predict"), rich_help_panel=DECIDE)(predict.predict)
app.command("compare", epilog=epilog("compare"), rich_help_panel=DECIDE)(report.compare)
app.command("verify", epilog=epilog("verify"), rich_help_panel=TRY)(verify.verify)
app.add_typer(optimize.app, name="optimize", epilog=epilog("optimize"), rich_help_panel=TRY)
app.command("report", epilog=epilog("report"), rich_help_panel=SHARE)(report.report)
app.add_typer(ci.app, name="ci", epilog=epilog("ci"), rich_help_panel=SHARE)
app.command("mcp", epilog=epilog("mcp"), rich_help_panel=SHARE)(mcp.mcp)
app.add_typer(experiments.app, name="experiments", epilog=epilog("experiments"), rich_help_panel=SET_UP)
app.command("doctor", epilog=epilog("doctor"), rich_help_panel=SET_UP)(setup.doctor)
app.add_typer(setup.app, name="config", epilog=epilog("config"), rich_help_panel=SET_UP)
app.add_typer(mapping.app, name="map", epilog=epilog("map"), rich_help_panel=MORE)
app.add_typer(history.app, name="history", epilog=epilog("history"), rich_help_panel=MORE)
app.add_typer(knowledge.app, name="knowledge", epilog=epilog("knowledge"), rich_help_panel=MORE)
app.add_typer(scores, name="accuracy", epilog=epilog("accuracy"), rich_help_panel=MORE)
app.add_typer(llm.app, name="llm", epilog=epilog("llm"), rich_help_panel=MORE)
app.add_typer(sessions.app, name="sessions", epilog=epilog("sessions"), rich_help_panel=MORE)


@app.callback(invoke_without_command=True)
def asap(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress and no warnings; errors only."),
    verbose: bool = typer.Option(False, "--verbose", help="Each stage on standard error, with its time."),
    debug: bool = typer.Option(False, "--debug", help="Show where an error comes from; also ASAP_DEBUG."),
) -> None:
    """Find what limits the step of a training run, and propose faster configurations."""
    output.set_verbosity(quiet, verbose)
    if debug:
        import os

        os.environ["ASAP_DEBUG"] = "1"
    if version:
        from asap import __version__

        print(f"asap {__version__}")
    elif context.invoked_subcommand is None:
        print(START, end="")


COMMANDS = {
    "memory": "sessions",
    "cost": "llm cost",
    "ledger": "accuracy ledger",
    "backtest": "accuracy backtest",
    "calibrate": "accuracy calibrate",
    "serve mcp": "mcp",
    "history add": "history import",
}
"""What began a command → what does now."""

OPTIONS = {
    "analyze": {"--model": "--llm"},
    "chat": {"--model": "--llm", "--config": "--template"},
    "optimize": {"--model": "--llm", "--config": "--template"},
    "ci": {"--config": "--files"},
    "ci comment": {"--model": "--llm"},
    "map": {"--on": "--hardware"},
    "history search": {"--limit": "--top"},
    "knowledge search": {"--limit": "--top"},
    "resolve": {"--timeout": "--time-limit"},
}
"""Command → option that it had → option that it has."""


def as_overrides(arguments: Sequence[str]) -> list[str]:
    """The arguments with settings that are typed as a launcher's options, such as ``--training.compile`` and
    ``--tensor-model-parallel-size 4``, as ``key=value``; options of a command, and what is nearly called like one, stay
    as they are, and so does what is behind ``--``."""
    words, found = list(arguments), list[str]()
    own = _own_options(arguments) if any(word.startswith("--") for word in words) else set[str]()
    while words and words[0] != "--":
        name, equals, value = words.pop(0).partition("=")
        if name.startswith("--") and ("." in name or (own and not get_close_matches(name, own))):
            bare = equals or not words or "=" in words[0] or words[0].startswith("-")
            name, equals, value = name[2:], "=", (value or "true") if bare else words.pop(0)
        found.append(name + equals + value)
    return [*found, *words]


def _own_options(arguments: Sequence[str]) -> set[str]:
    """Options of a command that takes settings of a run; empty for others."""
    command = typer.main.get_command(app)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    takes = any(one.name in ("overrides", "terms") for one in command.params)
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts, "--help")} if takes else set()


def renamed(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments with today's names, and what to say of each old one; nothing behind ``--`` is touched."""
    words, said = list(arguments), []
    for old, new in COMMANDS.items():
        size = len(old.split())
        if words[:size] == old.split():
            words[:size] = new.split()
            said.append(f"`asap {old}` is now `asap {new}`; the old name goes with the next release")
            break
    known = max((c for c in OPTIONS if words[: len(c.split())] == c.split()), key=len, default="")
    end = words.index("--") if "--" in words else len(words)
    for at, word in enumerate(words[:end]):
        name, equals, value = word.partition("=")
        if new := OPTIONS.get(known, {}).get(name):
            words[at] = new + equals + value
            said.append(f"{name} of `asap {known}` is now {new}; the old name goes with the next release")
    return words, said
